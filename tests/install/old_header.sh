#!/bin/sh
# old_header.sh LIBRARY SOURCE - a program that was compiled with the headers of 0.2.0 does not run with this library, whose ABI is
# another one: the loader says so, also where somebody has given the library its old name.
set -eu
library=$(realpath "$1") source=$(realpath "$2")
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
export CLB_CACHE_DIR=off LC_ALL=C
unset LD_LIBRARY_PATH
cd "$stage"
fail() { echo "old_header.sh: $1"; exit 1; }

# What 0.2.0 was to the linker: a name, and functions.
grep -ho 'clb_[a-z_]*(' "$source/tests/install/old_program.c" | sort -u | sed 's/(/;/; s/^/int /; s/;/(void) { return 0; }/' >old.c
cc -shared -fPIC -Wl,-soname,libclebsch.so.0 old.c -o libclebsch.so.0
cc -std=c11 -I"$source/tests/data/0.2.0" "$source/tests/install/old_program.c" -o program ./libclebsch.so.0 -lm
rm libclebsch.so.0

must_refuse() { # WORDS
  for now in "" 1; do
    if LD_BIND_NOW=$now LD_LIBRARY_PATH=$stage ./program >said 2>&1; then fail "it runs: $(cat said)"; fi
    grep -q "$1" said || fail "instead of '$1': $(cat said)"
  done
}
ln -s "$library" "$(basename "$(readlink -f "$library")")"
must_refuse "libclebsch.so.0: cannot open shared object file"
ln -s "$library" libclebsch.so.0
must_refuse "undefined symbol: clb_[a-z_]*"
