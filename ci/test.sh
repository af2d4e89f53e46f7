#!/bin/sh
# The README's test command: installs what the tests need, builds twice (as released, and under ASan and UBSan) and runs everything.
# Ends with 1 if a test fails or if what was skipped is not what tests/skipped.txt lists.
set -eu
cd "$(dirname "$0")/.."
ci/install.sh test
. "$(ci/intel_cpu.sh)"
for build in build-test build-sanitize; do
  [ $build = build-test ] && options="" || options="-Db_sanitize=address,undefined -Db_lundef=false -Dbuildtype=debugoptimized"
  # shellcheck disable=SC2086
  [ -d $build ] || meson setup $build $options
  meson compile -C $build
done
failed=0
meson test -C build-test --print-errorlogs --num-processes 2 || failed=1
# Intel's drivers load libraries in a way that the sanitizers refuse: this build sees PoCL only, and no ocloc.
mkdir -p build-sanitize/hidden
: >build-sanitize/hidden/libocloc.so
OCL_ICD_VENDORS="$OCL_ICD_VENDORS/pocl.icd" ZE_ENABLE_ALT_DRIVERS=none LD_LIBRARY_PATH="$PWD/build-sanitize/hidden:$LD_LIBRARY_PATH" \
  ASAN_OPTIONS=allocator_may_return_null=1 LSAN_OPTIONS=suppressions="$PWD/ci/leaks.txt":print_suppressions=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
  meson test -C build-sanitize --print-errorlogs --num-processes 2 --timeout-multiplier 3 || failed=1

# cmocka says "[  SKIPPED ] name" of each test, and again in its closing lines.
for build in test sanitize; do
  sed -n "s/^\[  SKIPPED \] \([^ ]*\)\$/$build: \1/p" build-$build/meson-logs/testlog.txt
done | LC_ALL=C sort -u >build-test/skipped.txt
# CI skips exactly what is listed.  Elsewhere less may be skipped (a GPU is there), and NVIDIA's compiler, which Debian lacks, may be missing.
if [ "${CI:-}" = true ]; then
  diff -u tests/skipped.txt build-test/skipped.txt && same=1 || same=0
else
  comm -13 tests/skipped.txt build-test/skipped.txt | grep -v 'cuda@' && same=0 || same=1
fi
if [ $same = 0 ]; then
  echo "ci/test.sh: skipped, but not as tests/skipped.txt says"
  failed=1
fi
passed=$(cat build-test/meson-logs/testlog.txt build-sanitize/meson-logs/testlog.txt | grep -c '^\[       OK \]' || true)
bad=$(cat build-test/meson-logs/testlog.txt build-sanitize/meson-logs/testlog.txt | grep -c '^\[  FAILED  \] [a-z]' || true)
[ $failed = 0 ] || [ "$bad" != 0 ] || bad=1
echo "$passed passed, $bad failed, $(wc -l <build-test/skipped.txt) skipped"
exit $failed
