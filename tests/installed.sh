#!/bin/sh
# installed.sh BUILD SOURCE - installs into a temporary folder and builds the examples against that copy, shared and static: C, C++
# and Fortran must print the same; the shared library shows nothing but clb_ symbols.
set -eu
build=$1 source=$2
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
export CLB_CACHE_DIR=off DESTDIR=$stage PKG_CONFIG_SYSROOT_DIR=$stage
meson install -C "$build" --no-rebuild --quiet
pc=$(find "$stage" -name clebsch.pc)
export PKG_CONFIG_PATH=${pc%/*}
libs=$(pkg-config --variable=libdir clebsch)
export LD_LIBRARY_PATH=$stage$libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
cd "$stage"
fail() { echo "installed.sh: $1"; exit 1; }

# shellcheck disable=SC2046
cc -std=c11 -Wall -Wextra -Wpedantic -Werror "$source/examples/harmonics.c" -o c $(pkg-config --cflags --libs clebsch)
# shellcheck disable=SC2046
cc "$source/examples/harmonics.c" -o static $(pkg-config --cflags clebsch) "$stage$libs/libclebsch.a" -lm -ldl -lpthread
[ "$(./c cpu)" = "$(./static cpu)" ] || fail "static and shared differ"
[ "$(./c cpu)" = "1.00000 0.51962 -0.86603 1.38564 0.92952 -0.58095 -0.25715 -1.54919 1.06507" ] || fail "wrong numbers: $(./c cpu)"
if ./c nowhere 2>message; then fail "a device that is not there opened"; fi
grep -q "nowhere" message || fail "no sentence about the device"
# shellcheck disable=SC2046
cc -std=c11 -Wall -Wextra -Wpedantic -Werror "$source/examples/tensor_product.c" -o product $(pkg-config --cflags --libs clebsch) -lm
# shellcheck disable=SC2046
cc "$source/examples/tensor_product.c" -o product_static $(pkg-config --cflags clebsch) "$stage$libs/libclebsch.a" -lm -ldl -lpthread
./product cpu >said || fail "the product: $(cat said)"
grep -q "^x 40, y 9, z 64 elements in a row, 704 weights in all" said || fail "the product's sizes: $(cat said)"
[ "$(grep -c "holds$" said)" = 3 ] || fail "the product's gradients: $(cat said)"
[ "$(./product_static cpu)" = "$(cat said)" ] || fail "static and shared differ on the product"
if command -v gfortran >/dev/null; then
  # shellcheck disable=SC2046
  gfortran -Wall -Werror "$stage$(pkg-config --variable=fortran clebsch | sed "s#^$stage##")" "$source/examples/harmonics.f90" -o f $(pkg-config --libs clebsch)
  [ "$(./f cpu)" = "$(./c cpu | sed 's/\b0\././g; s/-0\./-./g')" ] || [ "$(./f cpu)" = "$(./c cpu)" ] || fail "Fortran says $(./f cpu)"
  # shellcheck disable=SC2046
  gfortran -Wall -Werror "$stage$(pkg-config --variable=fortran clebsch | sed "s#^$stage##")" "$source/examples/tensor_product.f90" -o fp $(pkg-config --libs clebsch)
  ./fp cpu >said_f || fail "the product in Fortran: $(cat said_f)"
  [ "$(sed 's/\b0\././g' said_f)" = "3.0000 -3.0000 1.6454 .5774 6.0000 -3.6000 -9.0000 5.4000 4.0000 -2.4000 3.1500 8.4000 -5.2500 1.2000 8.4000 -2.4000" ] ||
    fail "the product in Fortran: $(cat said_f)"
fi
if command -v g++ >/dev/null; then
  echo '#include <clebsch/clebsch.h>
int main() { clb_context *c = nullptr; clb_status s = clb_context_create("cpu:interpreter", &c); clb_context_destroy(&c); return s; }' >x.cpp
  # shellcheck disable=SC2046
  g++ -Wall -Wextra -Werror x.cpp -o x $(pkg-config --cflags --libs clebsch)
  ./x || fail "C++"
  # shellcheck disable=SC2046
  g++ -std=c++20 -Wall -Werror -x c++ "$source/examples/tensor_product.c" -o xp $(pkg-config --cflags --libs clebsch)
  [ "$(./xp cpu)" = "$(cat said)" ] || fail "C++ and C differ on the product"
fi
strange=$(nm -D --defined-only "$stage$libs/libclebsch.so" | awk '{print $3}' | grep -v '^clb_' || true)
[ -z "$strange" ] || fail "symbols that are not clb_: $strange"
inner=$(nm -D --defined-only "$stage$libs/libclebsch.so" | awk '{print $3}' | while read -r s; do cat "$source"/include/clebsch/*.h | grep -q "\b$s(" || echo "$s"; done)
[ -z "$inner" ] || fail "symbols that no header declares: $inner"
