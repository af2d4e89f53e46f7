# Completion of `clebsch` in bash: commands, the options that the help of a command lists, and names of models.
_clebsch() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words
  if [ "$COMP_CWORD" = 1 ]; then
    words="help $(clebsch help 2>/dev/null | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p')"
  elif [[ $word == -* ]]; then
    words=$(clebsch "${COMP_WORDS[@]:1:COMP_CWORD-1}" --help 2>/dev/null |
      sed -n 's/^\(  -., \|      \)\(--[a-z0-9-]*\).*/\2/p')
  elif [[ $before =~ ^(-m|--model|fetch|info|certify)$ ]]; then
    words=$(clebsch models 2>/dev/null | sed -n '2,$s/^\([a-z0-9_-]\{1,\}\) .*/\1/p')
  else
    return 0
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -o default -F _clebsch clebsch
