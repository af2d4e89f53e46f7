#!/bin/bash
# A small model of water from a large one: SevenNet-0 labels water and ice, a NequIP is trained on
# that from nothing, and both run dynamics, whose radial distribution functions are compared.
#
#   examples/train/water.sh TEACHER [--quick] [--device DEVICE] [--out FOLDER] [--epochs N]
#
# TEACHER: SevenNet-0's checkpoint, checkpoint_sevennet_0.pth of the package sevenn, or any model of
# H and O.  An hour on two CPU cores; --quick is a minute, of too little of everything.  What it
# makes is in FOLDER (water): labels, student.safetensors, curve.svg, parity.svg and
# rdf.svg.  $CLEBSCH is the command (clebsch).
set -euo pipefail

clebsch=${CLEBSCH:-clebsch} teacher='' device=() out=water
side=4 cells=2 temperatures='300 400 500 600' cold='100 200' steps=2000 every=20 run=10000 skip=100
student=(--features 32x0e+32x1o+16x2e --layers 3 --r-max 4.5 --radial 32,32 --batch-atoms 800)
epochs=60 r_max=6
while [ $# -gt 0 ]; do
  case $1 in
    --quick)
      side=2 cells=1 temperatures='300 500' cold=150 steps=120 every=6 run=200 skip=2 epochs=60 r_max=3
      student=(--features 8x0e+8x1o --layers 2 --r-max 3.5 --radial 16 --batch-atoms 96) ;;
    --device) device=(--device "$2"); shift ;;
    --out) out=$2; shift ;;
    --epochs) epochs=$2; shift ;;
    -*) echo "$0: unknown option $1" >&2; exit 2 ;;
    *) teacher=$1 ;;
  esac
  shift
done
[ -n "$teacher" ] || { echo "usage: $0 TEACHER [--quick] [--device DEVICE] [--out FOLDER]" >&2; exit 2; }
mkdir -p "$out"

say() { printf '\n%s\n' "$*"; }
now() { date +%s; }

# ---- atoms ----

# SIDE^3 molecules on a grid, turned at random, at the density of water.
water() {
  awk -v side="$1" 'BEGIN {
    srand(3); d = 3.104; pi = atan2(0, -1)
    printf "%d\nLattice=\"%g 0 0 0 %g 0 0 0 %g\" Properties=species:S:1:pos:R:3\n", 3 * side^3,
      side * d, side * d, side * d
    for (m = 0; m < side^3; m++) {
      x = d * (m % side); y = d * (int(m / side) % side); z = d * int(m / side^2)
      c = 2 * rand() - 1; s = sqrt(1 - c * c); a = 2 * pi * rand(); b = 2 * pi * rand()
      ux = s * cos(a); uy = s * sin(a); uz = c                    # along the axis of the molecule
      px = cos(b) * c * cos(a) - sin(b) * sin(a); py = cos(b) * c * sin(a) + sin(b) * cos(a)
      pz = -cos(b) * s                                            # from one H to the other
      printf "O %.4f %.4f %.4f\n", x, y, z
      for (k = -1; k <= 1; k += 2)
        printf "H %.4f %.4f %.4f\n", x + .586 * ux + k * .757 * px, y + .586 * uy + k * .757 * py,
          z + .586 * uz + k * .757 * pz
    }
  }'
}

# Cubic ice, CELLS^3 cells of 8 molecules: each O of one half gives its H along two of its four bonds,
# each O of the other half along the two that are left.
ice() {
  awk -v cells="$1" 'BEGIN {
    a = 6.36; q = a / 4; h = 0.98 / sqrt(3)
    split("0 0 0 0 2 2 2 0 2 2 2 0", at, " ")
    split("1 1 1 1 -1 -1 -1 1 -1 -1 -1 1", bond, " ")
    printf "%d\nLattice=\"%g 0 0 0 %g 0 0 0 %g\" Properties=species:S:1:pos:R:3\n", 24 * cells^3,
      a * cells, a * cells, a * cells
    for (c = 0; c < cells^3; c++)
      for (m = 0; m < 8; m++) {
        i = 3 * int(m / 2); second = m % 2
        x = a * (c % cells) + q * (at[i + 1] + second)
        y = a * (int(c / cells) % cells) + q * (at[i + 2] + second)
        z = a * int(c / cells^2) + q * (at[i + 3] + second)
        printf "O %.4f %.4f %.4f\n", x, y, z
        for (k = 2 * second; k < 2 * second + 2; k++) {
          sign = second ? -1 : 1
          printf "H %.4f %.4f %.4f\n", x + sign * h * bond[3 * k + 1], y + sign * h * bond[3 * k + 2],
            z + sign * h * bond[3 * k + 3]
        }
      }
  }'
}

# ---- labels ----

dynamics() { # model, atoms, temperature, steps, every, seed, trajectory
  "$clebsch" md --model "$1" "${device[@]}" --structure "$2" --temperature "$3" --langevin 10 \
    --dt 0.5 --steps "$4" --every "$5" --seed "$6" --trajectory "$7" --force 2> /dev/null
}

# Frames of a trajectory but the first fifth, labelled; the last fifth are for the test.
label() { # trajectory, name
  "$clebsch" energy --model "$teacher" "${device[@]}" --structure "$1" --frames all \
    --out "$out/labelled.xyz" > /dev/null
  awk -v type="$2" -v train="$out/train.xyz" -v test="$out/test.xyz" -v all="$((steps / every + 1))" '
    NR == 1 { n = $1 }
    { row = (NR - 1) % (n + 2); frame = int((NR - 1) / (n + 2)); to = frame < .8 * all ? train : test }
    row == 1 { $0 = $0 " config_type=" type }
    frame >= .2 * all { print >> to }' "$out/labelled.xyz"
  rm "$out/labelled.xyz"
}

start=$(now)
say "Labels by $teacher"
rm -f "$out/train.xyz" "$out/test.xyz"
water "$side" > "$out/grid.xyz"
ice "$cells" > "$out/ice.xyz"
"$clebsch" relax --model "$teacher" "${device[@]}" --structure "$out/grid.xyz" --max-force 1 \
  --steps 200 --out "$out/relaxed.xyz" > /dev/null
dynamics "$teacher" "$out/relaxed.xyz" 600 "$steps" "$every" 1 "$out/run.xyz" > /dev/null
tail -n $((3 * side ** 3 + 2)) "$out/run.xyz" > "$out/water.xyz" # of a liquid
for t in $temperatures; do
  dynamics "$teacher" "$out/water.xyz" "$t" "$steps" "$every" "$t" "$out/run.xyz" > /dev/null
  label "$out/run.xyz" "water_$t"
done
for t in $cold; do
  dynamics "$teacher" "$out/ice.xyz" "$t" "$steps" "$every" "$t" "$out/run.xyz" > /dev/null
  label "$out/run.xyz" "ice_$t"
done
echo "$(grep -c Lattice "$out/train.xyz") frames to train on, $(grep -c Lattice "$out/test.xyz") to" \
  "test, in $(($(now) - start)) s"

# ---- the student ----

say "Training"
"$clebsch" train --new nequip "${student[@]}" "${device[@]}" --train "$out/train.xyz" \
  --epochs "$epochs" --out "$out/student.safetensors" --csv "$out/curve.csv" --plot "$out/curve.svg"

say "Errors on frames that it has not seen"
"$clebsch" evaluate --model "$out/student.safetensors" "${device[@]}" \
  --structures "$out/test.xyz" --plot "$out/parity.svg" | tee "$out/errors.txt"

# ---- dynamics of both ----

say "Dynamics of both at 330 K"
speed() { sed -n 's/^time .*, \(.* ns\/day\).*/\1/p' "$1"; }
for name in teacher student; do
  model=$teacher
  [ $name = teacher ] || model=$out/student.safetensors
  dynamics "$model" "$out/water.xyz" 330 "$run" 20 7 "$out/$name.xyz" > "$out/$name.txt"
  echo "$name: $(sed -n 's/^time *//p' "$out/$name.txt")"
done
"$clebsch" rdf --trajectory "$out/teacher.xyz" "$out/student.xyz" --pairs O-O,H-H --r-max "$r_max" \
  --skip "$skip" --title "Water at 330 K, $((3 * side ** 3)) atoms" --plot "$out/rdf.svg" \
  --csv "$out/rdf.csv" \
  --names "teacher $(speed "$out/teacher.txt"),student $(speed "$out/student.txt")" |
  tee "$out/rdf.txt"
say "All of it took $(($(now) - start)) s; it is in $out"
