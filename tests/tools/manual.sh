#!/bin/sh
# tests/tools/manual.sh - the manual page is whole, and mandoc finds nothing wrong in it: manual.sh MANUAL CLEBSCH
set -eu
manual=$1 clebsch=$2
wrong=$(mandoc -T lint "$manual" | grep -v 'missing date, using "": TH$' || true)
[ -z "$wrong" ] || { echo "$wrong"; exit 1; }
for command in $("$clebsch" help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
  grep -qx "\.SH clebsch $command" "$manual" || { echo "no section of $command"; exit 1; }
  # As many options as its help lists, without those that all commands have.
  help=$("$clebsch" "$command" --help | grep -c '^ \{2,6\}-.*--\|^      --' || true)
  page=$(sed -n "/^\.SH clebsch $command\$/,/^\.S[HS] /p" "$manual" | grep -c '^\.B \\-' || true)
  [ "$help" = $((page + 3)) ] || { echo "$command: $page options, not $help and the common ones less"; exit 1; }
done
