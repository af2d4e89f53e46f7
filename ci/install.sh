#!/bin/sh
# Installs the packages that Clebsch needs on Debian 12 or newer.  `ci/install.sh`: to build and run;
# `ci/install.sh demo`: also a model and a structure; `ci/install.sh test`: also these, and the
# compilers and drivers of all vendors that work without hardware.
set -eu
build="gcc pkg-config meson ninja-build gfortran libjansson-dev zlib1g-dev opencl-c-headers libze-dev ocl-icd-libopencl1 pocl-opencl-icd python3-venv"
demo="cp2k-data gromacs-data"
tests="cp2k-data gromacs-data locales g++ cmake git libcmocka-dev clinfo ocl-icd-opencl-dev llvm-spirv-15 spirv-tools oclgrind
  intel-opencl-icd libze1 libamdhip64-dev hipcc libhiprtc-builtins5 clang-19 lld-19 llvm-19 libclang-rt-19-dev
  libopenblas0-pthread libclblast1 mandoc python3 binutils libtbb12 clang-format cmark-gfm doxygen libopenmpi-dev openmpi-bin duktape
  libkim-api-dev wget"
sudo=""
[ "$(id -u)" = 0 ] || sudo=sudo
export DEBIAN_FRONTEND=noninteractive
$sudo apt-get update -qq
if [ "${1:-}" = demo ]; then build="$build $demo"; fi
if [ "${1:-}" = test ]; then build="$build $tests"; fi
# shellcheck disable=SC2086
$sudo apt-get install -y -qq --no-install-recommends $build >/dev/null
