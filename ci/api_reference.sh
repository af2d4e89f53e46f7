#!/bin/sh
# Makes the reference of C and Python from the headers and docstrings (doxygen):  ci/api_reference.sh FOLDER
# HTML goes to FOLDER/html.  Exits with 1 if doxygen has a warning, or if a public function of C is missing in it.
set -eu
folder=$(mkdir -p "$1" && cd "$1" && pwd)
cd "$(dirname "$0")/.."
version=$(sed -n "s/^project.* version: '\([^']*\)'.*/\1/p" meson.build)
{
  cat docs/Doxyfile
  echo "PROJECT_NUMBER = $version"
  echo "OUTPUT_DIRECTORY = $folder"
  echo "GENERATE_TAGFILE = $folder/clebsch.tag"
  echo "WARN_LOGFILE = $folder/warnings"
} | doxygen -
if [ -s "$folder/warnings" ]; then
  head -n 40 "$folder/warnings"
  exit 1
fi
missing=0
for name in $(sed -n 's/^CLB_API .*\(clb_[a-z0-9_]*\)(.*/\1/p' include/clebsch/*.h); do
  grep -q "<name>$name</name>" "$folder/clebsch.tag" && continue
  echo "ci/api_reference.sh: $name is missing"
  missing=1
done
exit $missing
