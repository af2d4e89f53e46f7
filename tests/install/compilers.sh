#!/bin/sh
# compilers.sh SOURCE - builds the command with clang, where a warning is an error, and with the default compiler as on a machine that has
# neither OpenCL's nor Level Zero's headers; there it must say which backends are missing, and compute on the CPU.
# gcc on x86 evaluates the last argument of a call first, clang and gcc on Arm the first one: kernels must come out right either way.
set -eu
source=$1
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
unset CFLAGS CPATH C_INCLUDE_PATH
export CLB_CACHE_DIR="$stage/cache"
fail() { echo "compilers.sh: $1"; exit 1; }
build() { # FOLDER OPTION ...
  folder=$1
  shift
  { meson setup "$stage/$folder" "$source" -Dbuildtype=plain -Ddefault_library=shared -Dwerror=true "$@" &&
    meson compile -C "$stage/$folder" clebsch:executable; } >"$stage/log" 2>&1 || fail "$folder: $(tail -n 40 "$stage/log")"
}
check() { # FOLDER ARGUMENT ...
  folder=$1
  shift
  "$stage/$folder/tools/clebsch" check "$@" >"$stage/said" 2>&1 || fail "$folder: $(grep -v ' ok$' "$stage/said" | tail -n 20)"
}

if clang=$(command -v clang-19 || command -v clang); then
  CC=$clang build clang
  check clang --op spherical_harmonics --part 1/8 --device cpu
  check clang --part 1/6 --device cpu:interpreter
else
  echo "compilers.sh: skipped: no clang"
fi

for header in CL/cl.h level_zero/ze_api.h; do # found before the system's
  mkdir -p "$stage/hidden/${header%/*}"
  echo '#error hidden' >"$stage/hidden/$header"
done
CFLAGS=-I$stage/hidden build bare
for backend in opencl level_zero; do
  grep -q "$backend *: NO, needs" "$stage/log" || fail "bare: the summary does not say what $backend needs: $(cat "$stage/log")"
  if "$stage/bare/tools/clebsch" check --device $backend >"$stage/said" 2>&1; then fail "bare: $backend opens"; fi
  grep -q "built without $backend: that needs" "$stage/said" || fail "bare, $backend: $(cat "$stage/said")"
done
"$stage/bare/tools/clebsch" devices >"$stage/said" || fail "bare: devices"
if grep -E '^(opencl|level_zero)' "$stage/said"; then fail "bare: devices of backends that are not there"; fi
check bare --op spherical_harmonics --part 1/8 --device cpu
