#!/bin/sh
# Runs `clebsch check` on every device that runs here, in parts, as many side by side as there are cores:  ci/check.sh BUILD [DEVICE ...]
# A named device, and with CLB_TEST_LONG every device, runs all parts.  Otherwise each part runs on one of the OpenCL drivers in rotation.
# Prints a line for each part, failed checks, and a summary of each device.  Exits with 1 if a check failed.  BUILD/check has the full output.
set -eu
parts=6 # part i has every sixth case of all ops, from case i on, so that all parts take about the same time

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
if [ $# = 0 ]; then # the tests cover the interpreter
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
