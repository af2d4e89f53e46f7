#!/bin/sh
# Installs Intel's CPU driver for OpenCL (sub-groups, SPIR-V; for tests only, Intel's licence, about 0.8 GB) into
# ${CLB_INTEL_CPU_DIR:-.intel-cpu}, registers it in addition to the system's drivers, and prints the file to source:  . "$(ci/intel_cpu.sh)"
# Exits with 1 and says why if the driver then is no device.
set -eu
mkdir -p "${CLB_INTEL_CPU_DIR:-.intel-cpu}"
folder=$(cd "${CLB_INTEL_CPU_DIR:-.intel-cpu}" && pwd -P)
venv=$folder/venv
driver=$venv/lib/libintelocl.so
packages="intel-opencl-rt==2026.2.0 intel-cmplr-lib-rt==2026.2.0 intel-cmplr-lic-rt==2026.2.0 tbb==2023.2.0 tcmlib==1.6.0"

if [ "$(cat "$folder/complete" 2>/dev/null)" != "$packages" ]; then
  [ -x "$venv/bin/pip" ] || python3 -m venv "$venv"
  # shellcheck disable=SC2086
  "$venv/bin/pip" install --quiet --disable-pip-version-check --no-cache-dir --no-deps $packages >&2
  echo "$packages" >"$folder/complete"
fi

# The loader is the system's, all else (TBB!) the packages' own.
loader=$({ ldconfig -p || /sbin/ldconfig -p; } 2>/dev/null | sed -n 's/.*libOpenCL\.so\.1 .*=> //p' | head -n 1)
[ -n "$loader" ] || { echo "ci/intel_cpu.sh: the system has no libOpenCL.so.1 (Debian: ocl-icd-libopencl1)" >&2; exit 1; }
mkdir -p "$folder/vendors" "$folder/loader"
rm -f "$folder"/vendors/*.icd
for icd in /etc/OpenCL/vendors/*.icd; do
  if [ -e "$icd" ]; then cp "$icd" "$folder/vendors/"; fi
done
echo "$driver" >"$folder/vendors/intel_cpu.icd"
ln -sfn "$loader" "$folder/loader/libOpenCL.so.1"
cat >"$folder/env" <<EOF
export OCL_ICD_VENDORS=$folder/vendors
export LD_LIBRARY_PATH=$folder/loader:$venv/lib\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}
EOF

# First the driver alone, as the loader passes over one that does not load, and does not say why.
(
  . "$folder/env"
  OCL_ICD_VENDORS=$folder/vendors/intel_cpu.icd python3 - "$driver" <<'EOF'
import ctypes
import sys

try:
    ctypes.CDLL(sys.argv[1])
    opencl, n, platform = ctypes.CDLL("libOpenCL.so.1"), ctypes.c_uint(), ctypes.c_void_p()
    status = opencl.clGetPlatformIDs(1, ctypes.byref(platform), None)
    status = status or opencl.clGetDeviceIDs(platform, ctypes.c_ulong(2), 0, None, ctypes.byref(n))
except OSError as error:
    sys.exit(f"ci/intel_cpu.sh: Intel's CPU driver does not load: {error}")
if status or not n.value:
    sys.exit(f"ci/intel_cpu.sh: Intel's CPU driver is no device here (OpenCL's error {status})")
EOF
) >&2
echo "$folder/env"
