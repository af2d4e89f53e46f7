#!/bin/sh
# The README's first command: installs, builds, checks the best device found against a float64 reference, and measures it.
set -eu
cd "$(dirname "$0")/.."
ci/install.sh
[ -d build ] || meson setup build
meson compile -C build
build/tools/clebsch devices
build/tools/clebsch check
build/tools/clebsch bench spherical_harmonics --lmax 4
