#!/bin/sh
# The first command of README.md: installs what is needed, builds, checks the first device against a float64 reference, and computes water
# with a NequIP model: energy, forces, time per atom, and 100 steps at constant energy.  The model and the structure are Debian packages.
# It takes about three minutes on two cores.
set -eu
cd "$(dirname "$0")/.."
ci/install.sh demo
[ -d build ] || meson setup build
meson compile -C build
clebsch=build/tools/clebsch
files=build/demo
mkdir -p $files
echo "== Devices"
$clebsch devices
echo "== Spherical harmonics against float64"
$clebsch check --op spherical_harmonics >$files/check.txt || { cat $files/check.txt; exit 1; }
tail -1 $files/check.txt
echo "== Water: 216 molecules"
pth=$(dpkg -L cp2k-data | grep '/NequIP/water\.pth$')
gro=$(dpkg -L gromacs-data | grep '/spc216\.gro$')
$clebsch convert "$pth" $files/water.safetensors
$clebsch energy --model $files/water.safetensors --structure "$gro" --dtype f32 --forces $files/forces.xyz
echo "== The same with splines instead of radial networks"
$clebsch energy --model $files/water.safetensors --structure "$gro" --dtype f32 --knots 512
echo "== 100 steps at constant energy"
$clebsch md --model $files/water.safetensors --structure "$gro" --dtype f32 --knots 512 --steps 100 --dt 0.5 --temperature 300 \
  --csv $files/energies.csv --trajectory $files/trajectory.xyz --plot $files/energies.svg --restart $files/restart --force
echo "== Files"
ls $files/*
