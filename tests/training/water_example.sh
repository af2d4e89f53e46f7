#!/bin/bash
# water_example.sh SCRIPT TEACHER CLEBSCH: the example that trains a small model on a large one's labels,
# at its smallest.  The student must have learnt something, and all files must be there.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
CLEBSCH=$3 "$1" "$2" --quick --device cpu --out "$folder/water" > "$folder/log" 2>&1 ||
  { cat "$folder/log"; exit 1; }
cd "$folder/water"
for file in train.xyz test.xyz student.safetensors curve.csv curve.svg parity.svg rdf.csv rdf.svg; do
  [ -s $file ] || { echo "there is no $file"; exit 1; }
done
[ "$(grep -c config_type=water_300 train.xyz) $(grep -c config_type=ice_150 test.xyz)" = "12 4" ]
# the mean error of forces, in meV/A, is well below their mean, which is several hundred
awk '$1 == "all" { found = 1; if ($5 + 0 < 1 || $5 > 250) { print "forces are off by " $5; exit 1 } }
  END { if (!found) exit 1 }' errors.txt
awk -F, 'NR == 2 { first = $4 } { last = $4 } END { if (!(last < first / 3)) { print first, last; exit 1 } }' curve.csv
[ "$(wc -l < rdf.csv)" = 101 ]
