#!/bin/sh
# The first command of README.md: installs what is needed, builds, checks the first device against a float64 reference, and computes water
# and a crystal of salt with SevenNet-0: energy, forces, stress, time per atom, and 100 steps at constant energy; then water with a NequIP
# model.  SevenNet comes from PyPI (43 MB), the water and NequIP's model from Debian.  It takes less than three minutes on two cores.
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
gro=$(dpkg -L gromacs-data | grep '/spc216\.gro$')
pth=$(dpkg -L cp2k-data | grep '/NequIP/water\.pth$')
echo "== SevenNet-0"
$clebsch convert "$(ci/sevennet.sh)/SevenNet_0__11Jul2024/checkpoint_sevennet_0.pth" $files/sevennet.safetensors
echo "== Water: 216 molecules"
$clebsch energy --model $files/sevennet.safetensors --structure "$gro" --out $files/forces.xyz
echo "== The same as a reference: double precision, radial networks instead of splines"
$clebsch energy --model $files/sevennet.safetensors --structure "$gro" --exact
echo "== A crystal: salt"
$clebsch energy --model $files/sevennet.safetensors --structure examples/salt.xyz --out $files/salt.xyz
echo "== Water: 100 steps at constant energy"
$clebsch md --model $files/sevennet.safetensors --structure "$gro" --steps 100 --dt 0.5 --temperature 300 \
  --csv $files/energies.csv --trajectory $files/trajectory.xyz --plot $files/energies.svg --restart $files/restart --force
echo "== Water with a NequIP model"
$clebsch convert "$pth" $files/water.safetensors
$clebsch energy --model $files/water.safetensors --structure "$gro"
echo "== Files"
ls $files/*
echo "== Next"
echo "Atoms of your own, in a file of .xyz, .gro, .pdb, .cif, POSCAR or LAMMPS data:"
echo "  $clebsch md --model $files/sevennet.safetensors --structure FILE --dtype f32 --knots 512 --steps 1000 --dt 0.5 \\"
echo "    --temperature 300 --trajectory trajectory.xyz"
echo "All commands: $clebsch help. To install (as root): meson install -C build."
echo "C and Fortran: docs/getting-started.md; Python and ASE: docs/python.md; LAMMPS: docs/lammps.md."
