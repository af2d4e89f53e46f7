#!/bin/sh
# check.sh DRIVER CLEBSCH PART [ARGUMENT ...] - `clebsch check` of part PART of all ops (with ARGUMENTs: of what they say) on an emulated
# Data Center GPU Max, through the genuine Level Zero backend, the real loader and Intel's compiler; then, as controls, products without
# barriers: races in local memory must be found, and where nobody looks for races, the results must be wrong.
# INTEL_EMULATOR_SEED=N: another order of the threads. More: level_zero.c.
set -eu
driver=$1 clebsch=$2 part=$3
shift 3
fail() { echo "check.sh: $1"; exit 1; }
if ! "$clebsch" devices | grep -q '^level_zero@pvc' || ! ldconfig -p | grep -q libiga64.so.1; then
  echo "[  SKIPPED ] intel_pvc"
  echo "skipped: libocloc.so or libiga64.so.1 is not here"
  exit 77
fi
[ -z "${CLB_TEST_LONG:-}" ] || part=1/1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export CLB_CACHE_DIR="$folder/cache" ZE_ENABLE_ALT_DRIVERS="$driver"
check() { "$clebsch" check --device level_zero:0 "$@" >"$folder/log" 2>"$folder/errors"; }

check --part "$part" "$@" || fail "part $part $*:
$(grep -v ' ok$' "$folder/log" | head -40)
$(head -20 "$folder/errors")"
[ ! -s "$folder/errors" ] || fail "part $part $*: $(head -20 "$folder/errors")"
echo "pvc, part $part: $(tail -1 "$folder/log")"

products="--op tensor_product --part 1/8"
export INTEL_EMULATOR_BARRIERS=off
# shellcheck disable=SC2086
check $products && fail "products are right without any barrier: the emulator proves nothing of them"
grep -q 'of local memory is .* with no barrier between' "$folder/errors" || fail "no race is found without barriers: $(cat "$folder/errors")"
# shellcheck disable=SC2086
INTEL_EMULATOR_RACES=off check $products && fail "products are right without any barrier"
grep -q WRONG "$folder/log" || fail "without barriers products fail, but none is wrong:
$(tail -5 "$folder/log")"
echo "without barriers: a race is found, $(grep -c 'WRONG$' "$folder/log") wrong, as they must be"
