#!/bin/sh
# Runs every op and whole models under NVIDIA's compute-sanitizer:  ci/sanitize_cuda.sh [BUILD [LOGS [TOOL...]]]
# BUILD: a build folder (build), of which it takes tools/clebsch, libclebsch.so* and tests/make_model.  LOGS: where each part's output goes
# (sanitize).  TOOL: racecheck, synccheck, initcheck, memcheck (all).
# Models find their neighbours on the GPU: `energy` of frames that grow and shrink, and `md` with a list that is made anew at every step. They are
# a made one, those of tests/data/mace, and, where they are there: NequIP's water.pth (CLB_TEST_NEQUIP, else Debian's cp2k-data), Nequix
# (CLB_TEST_NEQUIX) and SevenNet-0 (CLB_TEST_SEVENNET, the folder of its checkpoints).
# First everything runs without a tool, to fill the kernel cache, so that the tools need not wait for the compiler.  The parts of a tool run
# at the same time, as many as there are cores.  Prints a line per part; exits with 1 if a part found an error, 2 if it cannot run.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$here/build}
logs=${2:-sanitize}
if [ $# -ge 2 ]; then shift 2; else shift $#; fi
[ $# -gt 0 ] || set -- racecheck synccheck initcheck memcheck
clebsch=$build/tools/clebsch
rows=70       # more than two of the largest groups with one row per lane
parts=10      # of `clebsch check`, each in its own process
cores=$(nproc)

sanitizer=$(command -v compute-sanitizer || true)
for folder in /usr/local/cuda*/bin /usr/local/cuda*/compute-sanitizer; do
  if [ -z "$sanitizer" ] && [ -x "$folder/compute-sanitizer" ]; then sanitizer=$folder/compute-sanitizer; fi
done
[ -n "$sanitizer" ] || { echo "sanitize_cuda.sh: no compute-sanitizer on the PATH or in /usr/local/cuda*" >&2; exit 2; }
[ -x "$clebsch" ] || { echo "sanitize_cuda.sh: no $clebsch; build first: meson compile -C $build" >&2; exit 2; }
mkdir -p "$logs"
CLB_CACHE_DIR=${CLB_CACHE_DIR:-$(cd "$logs" && pwd)/cache}
export CLB_CACHE_DIR

# COLUMNS ROWS LAYERS [LATTICE]: a frame of so many water molecules, 3.1 Angstrom apart and turned; LATTICE: the rest of its comment
frame() {
  awk -v nx="$1" -v ny="$2" -v nz="$3" -v lattice="${4:-}" 'BEGIN {
    printf "%d\n%s\n", 3 * nx * ny * nz, lattice
    for (i = 0; i < nx * ny * nz; i++) {
      x = 3.1 * (i % nx); y = 3.1 * (int(i / nx) % ny); z = 3.1 * int(i / (nx * ny)); a = 1.3 * i
      printf "O %.4f %.4f %.4f\n", x, y, z
      for (h = 0; h < 2; h++) printf "H %.4f %.4f %.4f\n", x + 0.96 * cos(a + 1.82 * h), y + 0.96 * sin(a + 1.82 * h), z + 0.1 * h
    }
  }'
}
box='Lattice="6.2 0 0 0 6.2 0 0 0 6.2" Properties=species:S:1:pos:R:3 pbc="T T T"'
slab='Lattice="6.2 0 0 1.5 6.2 0 0 0 20" Properties=species:S:1:pos:R:3 pbc="T T F"'
frame 2 2 2 "$box" > "$logs/box.xyz"
{ frame 2 1 1; cat "$logs/box.xyz"; printf '1\n\nO 0 0 0\n'; frame 4 3 3; frame 2 2 1 "$slab"; frame 2 1 1; } > "$logs/frames.xyz"

models=
if "$build/tests/make_model" "$logs/made.safetensors"; then models=$logs/made.safetensors; else echo "without   a made model"; fi
for file in "$here"/tests/data/mace/*.safetensors "${CLB_TEST_NEQUIP:-/usr/share/cp2k/NequIP/water.pth}" "${CLB_TEST_NEQUIX:-}" \
  "${CLB_TEST_SEVENNET:-}/SevenNet_0__11Jul2024/checkpoint_sevennet_0.pth"; do
  if [ -f "$file" ]; then models="$models $file"; else echo "without   $file, which is not there"; fi
done

# SECONDS NAME COMMAND...: runs the command and prints a line with the result
part() {
  seconds=$1 name=$2
  shift 2
  log=$logs/$(echo "$name" | tr ' /' '__').txt
  start=$(date +%s)
  status=0
  timeout "$seconds" "$@" > "$log" 2>&1 < /dev/null || status=$?
  took=$(($(date +%s) - start))
  said=$(grep -E 'ERROR SUMMARY|RACECHECK SUMMARY|checks,' "$log" | sed 's/^=* *//' | tr '\n' ';' || true)
  if [ $status -eq 0 ]; then echo "ok      $name: ${took} s; $said"
  else
    echo "FAILED  $name: exit $status after ${took} s; $said see $log" | tee -a "$logs/failed"
  fi
}

started=0
begin() { # SECONDS NAME COMMAND...: as a part, beside others
  part "$@" &
  started=$((started + 1))
  [ $((started % cores)) -ne 0 ] || wait
}

rm -f "$logs/failed"
all() { # SECONDS PREFIX COMMAND...: runs every part of `clebsch check`, and the models, under COMMAND
  seconds=$1 prefix=$2
  shift 2
  for i in $(seq $parts); do
    begin 170 "$prefix check $i/$parts" "$@" "$clebsch" check --device cuda --rows $rows --part "$i/$parts"
  done
  for model in $models; do
    name=$(basename "${model%.*}")
    begin "$seconds" "$prefix energy $name" "$@" "$clebsch" energy --device cuda --model "$model" --structure "$logs/frames.xyz" \
      --dtype f64 --frames all --out "$logs/$name-$prefix.xyz"
    begin "$seconds" "$prefix md $name" "$@" "$clebsch" md --device cuda --model "$model" --structure "$logs/box.xyz" --dtype f32 --knots 64 \
      --skin 0 --temperature 300 --dt 0.02 --steps 4
  done
  wait
}

all 170 plain env
for tool; do
  all 60 "$tool" "$sanitizer" --tool "$tool" --error-exitcode 99 --print-limit 20
done
[ ! -e "$logs/failed" ]
