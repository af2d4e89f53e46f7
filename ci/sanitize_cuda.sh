#!/bin/sh
# NVIDIA's compute-sanitizer over every op and one model step:  ci/sanitize_cuda.sh [BUILD [LOGS [TOOL...]]]
# BUILD: a build folder (build).  LOGS: where each part's output goes (sanitize).  TOOL: racecheck, synccheck, initcheck, memcheck (all).
# First everything runs plainly, which fills a cache of kernels: the tools then wait for no compiler.  A line a part; exit 1 if any part
# found something, 2 if it cannot run.  A tool's parts run side by side.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$here/build}
logs=${2:-sanitize}
if [ $# -ge 2 ]; then shift 2; else shift $#; fi
[ $# -gt 0 ] || set -- racecheck synccheck initcheck memcheck
clebsch=$build/tools/clebsch
rows=70       # more than two groups of the widest kind that has a row to a lane
seconds=170   # a part that takes longer has failed

sanitizer=$(command -v compute-sanitizer || true)
for folder in /usr/local/cuda*/bin /usr/local/cuda*/compute-sanitizer; do
  if [ -z "$sanitizer" ] && [ -x "$folder/compute-sanitizer" ]; then sanitizer=$folder/compute-sanitizer; fi
done
[ -n "$sanitizer" ] || { echo "sanitize_cuda.sh: no compute-sanitizer on the PATH or in /usr/local/cuda*" >&2; exit 2; }
[ -x "$clebsch" ] || { echo "sanitize_cuda.sh: no $clebsch; build first: meson compile -C $build" >&2; exit 2; }
mkdir -p "$logs"
CLB_CACHE_DIR=${CLB_CACHE_DIR:-$(cd "$logs" && pwd)/cache}
export CLB_CACHE_DIR

# A model of random numbers that knows H and O, and a drop of water.
"$build/tests/make_model" "$logs/model.safetensors"
cat > "$logs/water.xyz" <<EOF
6

O 0.00 0.00 0.00
H 0.76 0.59 0.00
H -0.76 0.59 0.00
O 2.80 0.10 0.30
H 3.30 0.80 -0.10
H 3.20 -0.70 0.10
EOF

parts=10 # of `clebsch check`, each its own process

# NAME LIMIT COMMAND...: runs it, tells in a line how it went
part() {
  name=$1
  shift
  log=$logs/$(echo "$name" | tr ' /' '__').txt
  start=$(date +%s)
  status=0
  timeout "$seconds" "$@" > "$log" 2>&1 || status=$?
  took=$(($(date +%s) - start))
  said=$(grep -E 'ERROR SUMMARY|RACECHECK SUMMARY|checks,' "$log" | sed 's/^=* *//' | tr '\n' ';' || true)
  if [ $status -eq 0 ]; then echo "ok      $name: ${took} s; $said"
  else
    echo "FAILED  $name: exit $status after ${took} s; $said see $log" | tee -a "$logs/failed"
  fi
}

rm -f "$logs/failed"
all() { # PREFIX COMMAND...: every part of `clebsch check`, and the model
  prefix=$1
  shift
  for i in $(seq $parts); do
    part "$prefix check $i/$parts" "$@" "$clebsch" check --device cuda --rows $rows --part "$i/$parts" < /dev/null &
  done
  part "$prefix model" "$@" "$clebsch" energy --device cuda --model "$logs/model.safetensors" --structure "$logs/water.xyz" --dtype f32 --repeat 1 < /dev/null &
  wait
}

all plain env
for tool; do
  all "$tool" "$sanitizer" --tool "$tool" --error-exitcode 99 --print-limit 20
done
[ ! -e "$logs/failed" ]
