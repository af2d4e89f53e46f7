#!/bin/sh
# Installs Intel's CPU driver for OpenCL (sub-groups, SPIR-V; for tests only, Intel's licence, about 0.8 GB) into
# ${CLB_INTEL_CPU_DIR:-.intel-cpu}, registers it in addition to the system's drivers, and prints the file to source:  . "$(ci/intel_cpu.sh)"
set -eu
mkdir -p "${CLB_INTEL_CPU_DIR:-.intel-cpu}"
folder=$(cd "${CLB_INTEL_CPU_DIR:-.intel-cpu}" && pwd)
venv=$folder/venv
driver=$venv/lib/libintelocl.so

if [ ! -e "$driver" ]; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check --no-cache-dir intel-opencl-rt intel-cmplr-lib-rt >&2
fi
[ -e "$driver" ] || { echo "ci/intel_cpu.sh: the packages hold no lib/libintelocl.so" >&2; exit 1; }

mkdir -p "$folder/vendors"
rm -f "$folder"/vendors/*.icd
for icd in /etc/OpenCL/vendors/*.icd; do
  if [ -e "$icd" ]; then cp "$icd" "$folder/vendors/"; fi
done
echo "$driver" > "$folder/vendors/intel_cpu.icd"

# The system's loader must come before the one of the packages.
loader=$({ ldconfig -p || /sbin/ldconfig -p; } 2>/dev/null | sed -n 's/.*libOpenCL\.so\.1 .*=> //p' | head -n 1)
[ -n "$loader" ] || { echo "ci/intel_cpu.sh: the system has no libOpenCL.so.1" >&2; exit 1; }
cat > "$folder/env" <<EOF
export OCL_ICD_VENDORS=$folder/vendors
export LD_LIBRARY_PATH=$(dirname "$loader"):$venv/lib\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}
EOF
echo "$folder/env"
