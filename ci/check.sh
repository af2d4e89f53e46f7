#!/bin/sh
# Runs `clebsch check` on every device that runs here, in parts, as many side by side as there are cores:  ci/check.sh BUILD [DEVICE ...]
# Devices that are named, and with CLB_TEST_LONG all, take all parts.  Otherwise the drivers of OpenCL take the parts by turns: each part
# is checked on one of them.
# A line for each part, a summary a device; what failed is shown.  Ends with 1 if anything failed; what all said is in BUILD/check.
set -eu
parts=6 # every sixth case of all ops: each part takes about as long as the next

if [ "$1" = --one ]; then
  build=$2 part=${3##*,} device=${3%%,*} start=$(date +%s) status=0
  log=$build/check/$device-$part
  "$build/tools/clebsch" check --device "$device" --part "$part/$parts" >"$log" 2>"$log.errors" || status=$?
  echo "check $part/$parts, $(tail -n 1 "$log" | sed 's/ (.*)//'), $(($(date +%s) - start)) s"
  if [ $status != 0 ]; then
    grep -E 'WRONG$|DID NOT RUN$' "$log" || true
    head -n 40 "$log.errors"
  fi
  exit $status
fi

build=$1 failed=0 turns=1
shift
if [ $# = 0 ]; then # the interpreter's numbers are the tests'
  set -- $("$build/tools/clebsch" devices | awk '$2 == "runs" && $1 != "cpu:interpreter" {print $1}')
  [ "${CLB_TEST_LONG:-}" ] || turns=$(printf '%s\n' "$@" | grep -c '^opencl:') || turns=1
fi
rm -rf "$build/check"
mkdir -p "$build/check"
start=$(date +%s)
turn=0
for device in "$@"; do
  by=1
  case $device in opencl:*) by=$turns turn=$((turn + 1)) ;; esac
  for part in $(seq $parts); do
    [ $(((part + turn) % by)) != 0 ] || echo "$device,$part"
  done
done | xargs -P "$(nproc)" -I '{}' "$0" --one "$build" '{}' || failed=1
for device in "$@"; do
  cat "$build/check/$device-"* | awk -v device="$device" '/: [0-9]+ checks, [0-9]+ failed/ {sub(/.*\): /, ""); n += $1; bad += $3; parts++}
    END {printf "check of %s: %d checks in %d parts, %d failed\n", device, n, parts, bad}'
done
echo "check of $# devices: $(($(date +%s) - start)) s"
exit $failed
