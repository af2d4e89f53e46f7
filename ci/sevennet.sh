#!/bin/sh
# Fetches SevenNet's models (MIT licence): the wheel sevenn 0.13.0 from PyPI, of which nothing is installed or executed, into
# ${CLB_SEVENNET_DIR:-.sevennet}, where it stays for the tests of `clebsch fetch`, and prints the folder of its checkpoints:  models=$(ci/sevennet.sh)
set -eu
mkdir -p "${CLB_SEVENNET_DIR:-.sevennet}"
folder=$(cd "${CLB_SEVENNET_DIR:-.sevennet}" && pwd)
wheel=$folder/sevenn-0.13.0-py3-none-any.whl
models=$folder/sevenn/pretrained_potentials

if [ ! -d "$models" ] || [ ! -e "$wheel" ]; then
  [ -e "$folder/venv/bin/pip" ] || python3 -m venv "$folder/venv" >&2
  [ -e "$wheel" ] || "$folder/venv/bin/pip" download --quiet --disable-pip-version-check --no-cache-dir --no-deps --dest "$folder" sevenn==0.13.0 >&2
  echo "9378f7df2b75fe83274483a5f804790ae1023dd22ddeb6a48c1a03de97e22620  $wheel" | sha256sum --check --quiet >&2
  rm -rf "$folder/unpacked"
  python3 -m zipfile -e "$wheel" "$folder/unpacked"
  rm -rf "$folder/sevenn"
  mv "$folder/unpacked/sevenn" "$folder/sevenn"
  rm -r "$folder/unpacked"
fi
echo "$models"
