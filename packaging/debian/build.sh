#!/bin/sh
# Builds Debian's packages of the committed tree, and lets lintian look at them:  packaging/debian/build.sh FOLDER
# FOLDER gets the packages; what they need is installed already (apt-get build-dep packaging/debian).
set -eu
to=$(mkdir -p "$1" && cd "$1" && pwd)
cd "$(dirname "$0")/../.."
version=$(sed -n '1s/.*(\(.*\)-[^-]*).*/\1/p' packaging/debian/changelog)
rm -rf "$to/clebsch-$version"
git archive --prefix="clebsch-$version/" HEAD | gzip -n >"$to/clebsch_$version.orig.tar.gz"
tar -xzf "$to/clebsch_$version.orig.tar.gz" -C "$to"
cp -R packaging/debian "$to/clebsch-$version/debian"
rm "$to/clebsch-$version/debian/build.sh"
cd "$to/clebsch-$version"
dpkg-buildpackage -us -uc
cd ..
lintian --display-info --suppress-tags bad-distribution-in-changes-file ./*.changes
