#!/bin/sh
# Runs every op and one model step under NVIDIA's compute-sanitizer:  ci/sanitize_cuda.sh [BUILD [LOGS [TOOL...]]]
# BUILD: a build folder (build).  LOGS: where each part's output goes (sanitize).  TOOL: racecheck, synccheck, initcheck, memcheck (all).
# First everything runs without a tool, to fill the kernel cache, so that the tools need not wait for the compiler.  The parts of a tool run
# at the same time.  Prints a line per part; exits with 1 if a part found an error, 2 if it cannot run.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$here/build}
logs=${2:-sanitize}
if [ $# -ge 2 ]; then shift 2; else shift $#; fi
[ $# -gt 0 ] || set -- racecheck synccheck initcheck memcheck
clebsch=$build/tools/clebsch
rows=70       # more than two of the largest groups with one row per lane
seconds=170   # the time limit of a part

sanitizer=$(command -v compute-sanitizer || true)
for folder in /usr/local/cuda*/bin /usr/local/cuda*/compute-sanitizer; do
  if [ -z "$sanitizer" ] && [ -x "$folder/compute-sanitizer" ]; then sanitizer=$folder/compute-sanitizer; fi
done
[ -n "$sanitizer" ] || { echo "sanitize_cuda.sh: no compute-sanitizer on the PATH or in /usr/local/cuda*" >&2; exit 2; }
[ -x "$clebsch" ] || { echo "sanitize_cuda.sh: no $clebsch; build first: meson compile -C $build" >&2; exit 2; }
mkdir -p "$logs"
CLB_CACHE_DIR=${CLB_CACHE_DIR:-$(cd "$logs" && pwd)/cache}
export CLB_CACHE_DIR

# A model with random weights for H and O, and two water molecules.
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

parts=10 # of `clebsch check`, each in its own process

# NAME COMMAND...: runs the command and prints a line with the result
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
all() { # PREFIX COMMAND...: runs every part of `clebsch check`, and the model, under COMMAND
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
