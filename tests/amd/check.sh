#!/bin/sh
# check.sh EMULATOR CLEBSCH TARGET [ARGUMENT ...] - `clebsch check` (--op, --part and so on as asked; default: all of all ops) on an emulated
# AMD GPU, through the genuine HIP backend and compilers; then, as a control, products again with s_barrier made idle, which must come out
# wrong.  With CLB_TEST_LONG always all.
# AMD_EMULATOR_SEED=N: another order of the waves. AMD_EMULATOR_DUMP=FOLDER takes every launch, for compare.py. More: hip.c.
set -eu
emulator=$1 clebsch=$2 target=$3
shift 3
[ -z "${CLB_TEST_LONG:-}" ] || set --
fail() { echo "check.sh: $1"; exit 1; }
for tool in llvm-objdump-19 clang-19; do
  command -v $tool >/dev/null && continue
  echo "[  SKIPPED ] amd_$target"
  echo "skipped: $tool is not here"
  exit 77
done
cache=$(mktemp -d)
trap 'rm -rf "$cache"' EXIT
export CLB_CACHE_DIR="$cache" AMD_EMULATOR_TARGET="$target"
check() { LD_PRELOAD="$emulator" "$clebsch" check --device hip:0 "$@"; }

check "$@" >"$cache/log" 2>"$cache/errors" || fail "$* on $target:
$(grep -v ' ok$' "$cache/log" | head -40)
$(head -20 "$cache/errors")"
tail -1 "$cache/log"
if AMD_EMULATOR_BARRIERS=off check --op tensor_product --part 1/8 >"$cache/log" 2>&1; then fail "products on $target are right without any barrier: the emulator proves nothing of them"; fi
grep -q WRONG "$cache/log" || fail "without barriers products fail, but none is wrong:
$(tail -5 "$cache/log")"
echo "without barriers: $(grep -c 'WRONG$' "$cache/log") wrong, as they must be"
