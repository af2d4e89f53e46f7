#!/bin/sh
# Checks that C files are formatted as clang-format 14 does with .clang-format:  ci/format.sh [--fix]
# --fix: formats them.  Exits with 77 ("skipped") if there is no clang-format 14.
set -eu
cd "$(dirname "$0")/.."
for format in clang-format-14 clang-format none; do
  if command -v $format >/dev/null && $format --version | grep -q 'version 14\.'; then break; fi
done
[ $format != none ] || { echo "ci/format.sh: no clang-format 14 (Debian: clang-format-14)" >&2; exit 77; }
case "${1:-}" in
  --fix) how="-i" ;;
  "") how="--dry-run -Werror" ;;
  *) sed -n '2,3s/^# //p' "$0" >&2; exit 2 ;;
esac
# shellcheck disable=SC2086
find backends bench examples hosts/kim include kernels models python src tests tools -name '*.[ch]' -not -path src/codegen/builtins/vector.c |
  xargs -P 2 -n 50 $format $how
