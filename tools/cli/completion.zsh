#compdef clebsch
# Completion of `clebsch` in zsh: commands, the options that the help of a command lists, and names of models.
local -a found
if (( CURRENT == 2 )); then
  found=("${(@f)$(clebsch help 2>/dev/null | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\)  *\(.*\)/\1:\2/p')}" 'help:the help of a command')
  _describe command found
elif [[ $PREFIX == -* ]]; then
  found=("${(@f)$(clebsch ${words[2,CURRENT-1]} --help 2>/dev/null | sed -n 's/^\(  -., \|      \)\(--[a-z0-9-]*\).*/\2/p')}")
  compadd -a found
elif [[ ${words[CURRENT-1]} == (-m|--model|fetch|info|certify) ]]; then
  found=("${(@f)$(clebsch models 2>/dev/null | sed -n '2,$s/^\([a-z0-9_-]\{1,\}\) .*/\1/p')}")
  compadd -a found
  [[ ${words[CURRENT-1]} == fetch ]] || _files
else
  _files
fi
