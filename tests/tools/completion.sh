#!/bin/bash
# tests/tools/completion.sh - what bash completes: completion.sh COMPLETION CLEBSCH
set -eu
completion=$1 clebsch=$2
. "$completion"
clebsch() { "$clebsch" "$@"; }
expect() { # WORDS FOR THE LINE -- WHAT IS OFFERED
  COMP_WORDS=() COMPREPLY=()
  while [ "$1" != = ]; do COMP_WORDS+=("$1"); shift; done
  shift
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  _clebsch
  [ "${COMPREPLY[*]}" = "$*" ] || { echo "${COMP_WORDS[*]}: '${COMPREPLY[*]}', not '$*'"; exit 1; }
}
expect clebsch de = devices
expect clebsch hel = help
expect clebsch md --model m --temp = --temperature
expect clebsch md --st = --structure --steps
expect clebsch bench --suite quick --li = --list
expect clebsch source convolution --gra = --graph --gradients
expect clebsch energy a =
expect clebsch fetch sevennet-l = sevennet-l3i5
expect clebsch energy -m nequix-om = nequix-omat-1
