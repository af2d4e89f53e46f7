# Completion of `clebsch` in bash: its commands, and the options that the help of a command lists.
_clebsch() {
  local word=${COMP_WORDS[COMP_CWORD]} words
  if [ "$COMP_CWORD" = 1 ]; then
    words="help $(clebsch help 2>/dev/null | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p')"
  elif [[ $word == -* ]]; then
    words=$(clebsch "${COMP_WORDS[@]:1:COMP_CWORD-1}" --help 2>/dev/null |
      sed -n 's/^\(  -., \|      \)\(--[a-z-]*\).*/\2/p')
  else
    return 0
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -o default -F _clebsch clebsch
