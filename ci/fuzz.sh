#!/bin/sh
# Builds the fuzzers of tests/fuzz (clang, ASan, UBSan) and runs each for SECONDS (default: 10), two at a time, starting from its committed
# corpus and from what earlier runs found:  ci/fuzz.sh [SECONDS [TARGET ...]]
# Prints one line per target.  Exits with 1 if one failed; its input is then in build-fuzz/found.
set -eu
cd "$(dirname "$0")/.."
build=$PWD/build-fuzz

# The largest inputs, in bytes: large enough that quadratic time exceeds the timeout.
longest() {
  case $1 in
    header | pickle | torch | nqx | safetensors) echo 16384 ;;
    *) echo 65536 ;;
  esac
}

# Runs one target and prints its line; returns 1 if it failed.
one() {
  target=$1 seconds=$2 log=$build/$1.log failed=0
  mkdir -p "$build/found" "$build/corpus/$target"
  ASAN_OPTIONS=allocator_may_return_null=1:detect_stack_use_after_return=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 "$build/tests/fuzz/fuzz_$target" \
    -max_total_time="$seconds" -max_len="$(longest "$target")" -timeout=30 -malloc_limit_mb=64 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="$build/found/$target-" "$build/corpus/$target" "tests/fuzz/corpus/$target" >"$log" 2>&1 || failed=1
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  cover=$(grep -o 'cov: [0-9]*' "$log" | tail -n 1)
  [ $failed = 0 ] && verdict=ok || verdict=FAILED
  echo "fuzz $target: ${runs:-no} inputs, ${cover:-cov: 0} edges, $verdict"
  if [ $failed = 1 ]; then
    grep -a -E '^fuzz: |runtime error:|^SUMMARY|^==[0-9]*== ?ERROR|Test unit written' "$log" || tail -n 20 "$log"
  fi
  return $failed
}

if [ "${1:-}" = --one ]; then
  one "$2" "$3"
  exit
fi

seconds=${1:-10}
[ $# = 0 ] || shift
clang=$(command -v clang-19 || command -v clang) || { echo "ci/fuzz.sh: there is no clang" >&2; exit 1; }
[ -d "$build" ] || CC=$clang meson setup "$build" -Dfuzz=true -Db_sanitize=address,undefined -Db_lundef=false -Dbuildtype=debugoptimized -Dc_args='-w -g1' >/dev/null
meson compile -C "$build" fuzzers >"$build/compile.log" || { tail -n 40 "$build/compile.log"; exit 1; }
# shellcheck disable=SC2046
[ $# != 0 ] || set -- $(sed -n "s/^  \['\([a-z]*\)', .*/\1/p" tests/fuzz/meson.build)

# Temporary files are in memory if possible.
folder=$(mktemp -d /dev/shm/clebsch-fuzz.XXXXXX 2>/dev/null || mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM
TMPDIR=$folder
export TMPDIR
printf '%s\n' "$@" | xargs -P 2 -I '{}' "$0" --one '{}' "$seconds" && failed=0 || failed=1
exit $failed
