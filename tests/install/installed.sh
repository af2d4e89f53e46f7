#!/bin/sh
# installed.sh BUILD SOURCE MAKE_MODEL - installs into a temporary prefix, and builds and runs the examples against that copy: through
# pkg-config, CMake and Meson, shared and static.  C, C++ and Fortran must print the same; both libraries show only what the headers declare.
set -eu
build=$1 source=$2 make_model=$(realpath "$3")
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
export CLB_CACHE_DIR="$stage/cache"
fail() { echo "installed.sh: $1"; exit 1; }

# The tree is moved to where it was not configured for: `all`.  `static` is the same without the shared library.
DESTDIR=$stage/dest meson install -C "$build" --no-rebuild --quiet
prefix=$(sed -n 's/^prefix=//p' "$(find "$stage/dest" -name clebsch.pc)")
mv "$stage/dest$prefix" "$stage/all"
cp -R "$stage/all" "$stage/static"
for tree in all static; do
  sed -i "s#^prefix=.*#prefix=$stage/$tree#" "$(find "$stage/$tree" -name clebsch.pc)"
done
env -u LD_LIBRARY_PATH "$stage/all/bin/clebsch" --version >/dev/null || fail "the command does not find its library beside it"
env -u LD_LIBRARY_PATH ldd "$stage/all/bin/clebsch" | grep -q "libclebsch.*=> $stage/all/" || fail "the command takes another library"
pc=$(find "$stage/all" -name clebsch.pc)
export PKG_CONFIG_PATH="${pc%/*}"
libs=$(pkg-config --variable=libdir clebsch)
fortran=$(pkg-config --variable=fortran clebsch)
find "$stage/static" -name 'libclebsch.so*' -exec rm {} +
export LD_LIBRARY_PATH="$libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
cp -R "$source/examples" "$stage/examples"
cd "$stage/examples"
"$make_model" "$stage/made.safetensors"

# The words that a user copies from the head of each example.
# shellcheck disable=SC2086
by_pkg_config() { # FOLDER [--static]
  mkdir "$1"
  warnings="-Wall -Wextra -Werror -O2 -g"
  headers=$(pkg-config --cflags clebsch)
  to=$(pkg-config ${2:-} --libs clebsch)
  for name in harmonics tensor_product fit water_edges; do
    cc -std=c11 -Wpedantic $warnings $headers $name.c -o "$1/$name" $to -lm
  done
  c++ -std=c++11 -Wpedantic $warnings $headers water.cpp -o "$1/water_cpp" $to
  c++ -std=c++20 -Wall -Werror $headers -x c++ tensor_product.c -o "$1/tensor_product_cpp" $to
  for name in harmonics tensor_product fit water; do
    gfortran $warnings -std=f2018 -J "$1" "$fortran" $name.f90 -o "$1/${name}_fortran" $to
  done
}

# As fpm compiles a library: the module must compile alone, with its interfaces explicit.
gfortran -std=f2018 -fimplicit-none -Werror=implicit-interface -fPIC -c "$fortran" -J "$stage" -o "$stage/module.o"

check_harmonics() { # FOLDER
  [ "$("$1/harmonics" cpu)" = "1.00000 0.51962 -0.86603 1.38564 0.92952 -0.58095 -0.25715 -1.54919 1.06507" ] ||
    fail "$1: wrong numbers: $("$1/harmonics" cpu)"
  [ "$("$1/harmonics_fortran" cpu | sed 's/^\./0./; s/ \./ 0./g; s/-\./-0./g')" = "$("$1/harmonics" cpu)" ] || fail "$1: Fortran says $("$1/harmonics_fortran" cpu)"
  if "$1/harmonics" nowhere 2>message; then fail "$1: a device that is not there opened"; fi
  grep -q "nowhere" message || fail "$1: no sentence about the device"
}

check_product() { # FOLDER
  "$1/tensor_product" cpu >said || fail "$1: the product: $(cat said)"
  grep -q "^x 40, y 9, z 64 elements in a row, 704 weights in all" said || fail "$1: the product's sizes: $(cat said)"
  [ "$(grep -c "holds$" said)" = 3 ] || fail "$1: the product's gradients: $(cat said)"
  "$1/tensor_product_fortran" cpu >said_f || fail "$1: the product in Fortran: $(cat said_f)"
  [ "$(sed 's/\b0\././g' said_f)" = "3.0000 -3.0000 1.6454 .5774 6.0000 -3.6000 -9.0000 5.4000 4.0000 -2.4000 3.1500 8.4000 -5.2500 1.2000 8.4000 -2.4000" ] ||
    fail "$1: the product in Fortran: $(cat said_f)"
}

check_fit() { # FOLDER
  "$1/fit" cpu >said || fail "$1: the fit: $(cat said)"
  grep -q "^c0 0.9" said && grep -q "^loss 0.0000" said || fail "$1: the fit: $(cat said)"
  [ "$("$1/fit_fortran" cpu | sed 's/ \./ 0./')" = "$(cat said)" ] || fail "$1: the fit in Fortran: $("$1/fit_fortran" cpu)"
}

# Both ways into the model, in both languages, to the last bit.
check_water() { # FOLDER MODEL
  "$1/water_edges" "$2" cpu >edges || fail "$1: water_edges"
  "$1/water_cpp" "$2" cpu >atoms || fail "$1: water.cpp"
  "$1/water_fortran" "$2" cpu >fortran || fail "$1: water.f90"
  [ "$(wc -l <edges)" -gt 24 ] || fail "$1: water_edges says little: $(cat edges)"
  grep '^edges:' fortran | cmp -s - edges || fail "$1: C and Fortran differ on edges"
  grep '^atoms:' fortran | cmp -s - atoms || fail "$1: C++ and Fortran differ on atoms"
  for name in water_edges water_cpp water_fortran; do
    "$1/$name" --help 2>&1 | grep -q "clebsch convert" || fail "$1: $name --help"
    if "$1/$name" 2>message; then fail "$1: $name ends well without a model"; fi
    grep -q "clebsch convert" message || fail "$1: $name does not say how to get a model"
    if "$1/$name" "$source/LICENSE" cpu 2>message; then fail "$1: $name took a text for a model"; fi
    grep -q "LICENSE" message || fail "$1: $name does not name the file that is wrong"
  done
}

check() { # FOLDER shared|static
  for name in harmonics water_edges water_cpp water_fortran; do
    if readelf -d "$1/$name" | grep -q "NEEDED.*libclebsch"; then linked=shared; else linked=static; fi
    [ $linked = "$2" ] || fail "$1: $name is linked $linked"
  done
  check_harmonics "$1"
  check_fit "$1"
  check_product "$1"
  check_water "$1" "$stage/made.safetensors"
  [ -f "$stage/first" ] || cp fortran "$stage/first"
  cmp -s fortran "$stage/first" || fail "$1: other numbers than the first build's"
}

by_pkg_config shared
check shared shared
"./shared/tensor_product_cpp" cpu | cmp -s - said || fail "C++ and C differ on the product"
# shellcheck disable=SC2046
gfortran -Wall -Wextra -Werror -O2 -std=f2018 -J "$stage" "$fortran" "$source/tests/install/convolution.f90" -o convolution $(pkg-config --libs clebsch)
[ "$(./convolution cpu)" = holds ] || fail "the convolution in Fortran"
PKG_CONFIG_PATH="$stage/static${PKG_CONFIG_PATH#"$stage/all"}" by_pkg_config static --static
check static static

if command -v cmake >/dev/null; then
  for way in shared static; do
    [ $way = static ] && on=ON || on=OFF
    { cmake -S . -B cmake-$way -DCMAKE_PREFIX_PATH="$stage/all" -DSTATIC="$on" && cmake --build cmake-$way; } >log 2>&1 || fail "CMake, $way: $(cat log)"
    check cmake-$way $way
  done
  if cmake -S . -B refused -DCMAKE_PREFIX_PATH="$stage/all" -DSTATIC=ON \
    -DCLEBSCH_JANSSON=CLEBSCH_JANSSON-NOTFOUND -DCMAKE_FIND_LIBRARY_PREFIXES=no >log 2>&1; then
    fail "CMake: static without jansson"
  fi
  grep -q "needs the jansson library" log || fail "CMake does not say what is missing: $(cat log)"
else
  echo "installed.sh: skipped: no cmake"
fi

for way in shared static; do
  [ $way = static ] && on=true || on=false
  { meson setup meson-$way -Dprefer_static="$on" && meson compile -C meson-$way; } >log 2>&1 || fail "Meson, $way: $(cat log)"
  check meson-$way $way
done

# A decimal comma in the caller's locale changes nothing.
mkdir "$stage/locales"
if localedef -i de_DE -f UTF-8 "$stage/locales/de_DE.UTF-8" >/dev/null 2>&1; then
  # shellcheck disable=SC2046
  cc water_edges.c "$source/tests/install/locale_of_environment.c" -o comma $(pkg-config --cflags --libs clebsch)
  CLB_CACHE_DIR=off LOCPATH=$stage/locales LC_ALL=de_DE.UTF-8 ./comma "$stage/made.safetensors" cpu >said || fail "de_DE: water_edges"
  grep -q "[0-9],[0-9]" said || fail "de_DE: no decimal comma: the test tests nothing"
  tr , . <said | cmp -s - edges || fail "de_DE changes the numbers"
else
  echo "installed.sh: skipped: no sources of the locale de_DE (package locales)"
fi

# Several processes with ghost atoms: the energy and forces of one process that has no ghosts, as exactly as f32 has them.
check_processes() { # MODEL
  ./shared/water_fortran "$1" cpu | sed -n 's/^atoms: //p' | awk '
    $1 == "energy" {print $4} $2 == "(eV/Angstrom)" {print $4, $5, $6}' >want
  for n in 1 2 9; do # the last has processes without atoms
    mpiexec --oversubscribe -n $n ./water_mpi "$1" cpu >said 2>message || fail "water_mpi, $n processes: $(cat message)"
    awk '{print $1 == "energy" ? $2 : $3 " " $4 " " $5}' said | paste want - | awk '
      {for (i = 1; i <= NF / 2; i++) {d = $i - $(i + NF / 2); most = 3e-6 * (1 + ($i < 0 ? -$i : $i)); if (d < -most || d > most) exit 1}} END {exit NR < 25}' ||
      fail "water_mpi, $n processes: $(cat said), but one: $(cat want)"
  done
}
if command -v mpif90 >/dev/null; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  # shellcheck disable=SC2046
  mpif90 -Wall -Wextra -Werror -O2 -g -std=f2018 -J "$stage" "$fortran" water_mpi.f90 -o water_mpi $(pkg-config --libs clebsch)
  check_processes "$stage/made.safetensors"
  if mpiexec --oversubscribe -n 2 ./water_mpi "$source/LICENSE" cpu >said 2>message; then fail "water_mpi took a text for a model"; fi
  grep -q "water_mpi: .*LICENSE" message || fail "water_mpi does not name the file that is wrong"
else
  echo "installed.sh: skipped: no mpif90 (packages libopenmpi-dev and openmpi-bin)"
fi

# A model of the field, from conversion to forces.
water=${CLB_TEST_NEQUIP:-/usr/share/cp2k/NequIP/water.pth}
if [ -r "$water" ]; then
  "$stage/all/bin/clebsch" convert "$water" "$stage/water.safetensors"
  check_water shared "$stage/water.safetensors"
else
  echo "installed.sh: skipped: no $water (package cp2k-data, or CLB_TEST_NEQUIP)"
fi

declared=$(cat "$source"/include/clebsch/*.h | tr -c 'a-z0-9_' '\n' | grep '^clb_' | sort -u)
for library in "-D $libs/libclebsch.so" "-g $libs/libclebsch.a"; do
  # shellcheck disable=SC2086
  inner=$(nm --defined-only $library | awk 'NF == 3 {print $3}' | grep -v -x -F "$declared" || true)
  [ -z "$inner" ] || fail "$library: symbols that no header declares: $inner"
done
