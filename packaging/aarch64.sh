#!/bin/sh
# Builds the library and the command for aarch64 on another Debian machine, and runs `clebsch check` in qemu:  packaging/aarch64.sh FOLDER
# The interpreter does all cases, the compiled backend some (with the cross compiler as `cc`).
# Needs Debian's gcc-aarch64-linux-gnu, libc6-dev-arm64-cross and qemu-user, and what ci/install.sh installs.
set -eu
[ $# = 1 ] || { sed -n '2,4s/^# //p' "$0" >&2; exit 2; }
folder=$(mkdir -p "$1" && cd "$1" && pwd)
source=$(cd "$(dirname "$0")/.." && pwd)
root=$("$source/packaging/arm64_root.sh" "$folder")
libraries=$root/usr/lib/aarch64-linux-gnu

mkdir -p "$folder/bin"
cat >"$folder/bin/cc" <<'END'
#!/bin/sh
unset LD_LIBRARY_PATH
exec aarch64-linux-gnu-gcc "$@"
END
chmod +x "$folder/bin/cc"
cat >"$folder/cross.ini" <<END
[binaries]
c = 'aarch64-linux-gnu-gcc'
ar = 'aarch64-linux-gnu-ar'
nm = 'aarch64-linux-gnu-nm'
objcopy = 'aarch64-linux-gnu-objcopy'
ld = 'aarch64-linux-gnu-ld'
strip = 'aarch64-linux-gnu-strip'
pkgconfig = 'pkg-config'
[properties]
pkg_config_libdir = '$libraries/pkgconfig'
[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'aarch64'
endian = 'little'
END
[ -d "$folder/build" ] || meson setup "$folder/build" "$source" --cross-file "$folder/cross.ini" -Dwerror=true -Dtests=disabled
meson compile -C "$folder/build"

check() {
  PATH="$folder/bin:$PATH" CLB_CACHE_DIR="$folder/cache" qemu-aarch64 -L /usr/aarch64-linux-gnu \
    -E LD_LIBRARY_PATH="$folder/build:$libraries" "$folder/build/tools/clebsch" check "$@" >"$folder/log" ||
    { grep -v ' ok$' "$folder/log" | tail -n 40; exit 1; }
  tail -n 1 "$folder/log"
}
check --device cpu:interpreter
check --device cpu --part 1/40
