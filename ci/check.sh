#!/bin/sh
# Runs `clebsch check` whole on every device that runs here, half the cases of an op at a time and as many side by side as there are cores:
# ci/check.sh BUILD [DEVICE ...]
# A line for each half, a summary a device; what failed is shown.  Ends with 1 if anything failed; what all said is in BUILD/check.
set -eu
ops="convolution tensor_product spherical_harmonics" # the longest first

if [ "$1" = --one ]; then
  build=$2 part=${3##*,} device=${3%%,*} start=$(date +%s) status=0
  op=${3#*,} op=${op%,*}
  log=$build/check/$device-$op-$part
  "$build/tools/clebsch" check --device "$device" --op "$op" --part "$part/2" >"$log" 2>"$log.errors" || status=$?
  echo "check $op $part/2, $(tail -n 1 "$log" | sed 's/ (.*)//'), $(($(date +%s) - start)) s"
  if [ $status != 0 ]; then
    grep -E 'WRONG$|DID NOT RUN$' "$log" || true
    head -n 40 "$log.errors"
  fi
  exit $status
fi

build=$1 failed=0
shift
# The interpreter's numbers are the tests'.
[ $# != 0 ] || set -- $("$build/tools/clebsch" devices | awk '$2 == "runs" && $1 != "cpu:interpreter" {print $1}')
rm -rf "$build/check"
mkdir -p "$build/check"
start=$(date +%s)
for op in $ops; do
  for device in "$@"; do echo "$device,$op,1" && echo "$device,$op,2"; done
done | xargs -P "$(nproc)" -I '{}' "$0" --one "$build" '{}' || failed=1
for device in "$@"; do
  cat "$build/check/$device-"* | awk -v device="$device" '/: [0-9]+ checks, [0-9]+ failed/ {sub(/.*\): /, ""); n += $1; bad += $3; parts++}
    END {printf "check of %s: %d checks in %d parts, %d failed\n", device, n, parts, bad}'
done
echo "check of $# devices: $(($(date +%s) - start)) s"
exit $failed
