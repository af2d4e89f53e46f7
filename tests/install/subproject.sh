#!/bin/sh
# subproject.sh SOURCE MAKE_MODEL - the examples with Clebsch as a Meson subproject: only the library is built, and C and Fortran agree.
set -eu
source=$1 make_model=$(realpath "$2")
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
export CLB_CACHE_DIR=off
fail() { echo "subproject.sh: $1"; exit 1; }

cp -R "$source/examples" "$stage/examples"
cd "$stage/examples"
mkdir subprojects
ln -s "$source" subprojects/clebsch
{ meson setup build --force-fallback-for=clebsch -Doptimization=0 && meson compile -C build; } >log 2>&1 || fail "$(tail -20 log)"
[ ! -e build/subprojects/clebsch/tools ] || fail "the command was built, too"
"$make_model" model.safetensors
build/water_edges model.safetensors cpu:interpreter >edges || fail "water_edges"
build/water_fortran model.safetensors cpu:interpreter >fortran || fail "water.f90"
[ -s edges ] || fail "water_edges says nothing"
grep '^edges:' fortran | cmp -s - edges || fail "C and Fortran differ"
