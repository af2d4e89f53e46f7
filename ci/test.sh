#!/bin/sh
# The README's test command: installs what the tests need, builds twice (as released, and under ASan and UBSan) and runs everything.
# Ends with 1 if a test fails or if what was skipped differs from tests/skipped.txt.
set -eu
cd "$(dirname "$0")/.."
ci/install.sh test
ci/intel_cpu.sh
. "${CLB_INTEL_CPU_DIR:-.intel-cpu}/env"
log=build-test/tests.log
for build in build-test build-sanitize; do
  [ "$build" = build-test ] && options="" || options="-Db_sanitize=address,undefined -Db_lundef=false -Dbuildtype=debugoptimized"
  # shellcheck disable=SC2086
  [ -d $build ] || meson setup $build --prefix="$PWD/$build/installed" $options
  meson compile -C $build
done
meson install -C build-test --quiet
failed=0
meson test -C build-test --print-errorlogs --num-processes 2 || failed=1
ASAN_OPTIONS=detect_leaks=1:protect_shadow_gap=0 LSAN_OPTIONS=suppressions="$PWD/ci/leaks.txt":print_suppressions=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
  meson test -C build-sanitize --print-errorlogs --num-processes 2 --timeout-multiplier 4 || failed=1
cat build-test/meson-logs/testlog.txt build-sanitize/meson-logs/testlog.txt >$log
# cmocka says "[  SKIPPED ] name"; each name is listed once for all builds.
sed -n 's/^\[  SKIPPED \] \(.*\)$/\1/p' $log | grep -v ' test(s)' | sort -u >build-test/skipped.txt
if ! diff -u tests/skipped.txt build-test/skipped.txt; then
  echo "ci/test.sh: what was skipped (+) differs from tests/skipped.txt (-)"
  failed=1
fi
passed=$(grep -c '^\[       OK \]' $log || true)
bad=$(grep -c '^\[  FAILED  \] [^0-9]' $log || true)
[ $failed = 0 ] || bad=$((bad > 0 ? bad : 1))
echo "$passed passed, $bad failed, $(wc -l <build-test/skipped.txt) skipped"
exit $failed
