#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test:  bash deploy/test.sh
#
# The release build and all of its tests come first (up to three that fail are run once more, alone, and
# named), then the quick start as a new user runs it, then the fuzz targets for a few seconds each, then
# the rooms' own tests under ASan+UBSan and under TSan.
# COLLECT_TEST_MINUTES (default 25) bounds the whole: a phase that would begin with too little left does
# not run, and then the whole has failed unless COLLECT_TEST_MAY_SKIP=yes says that this is no failure.
# COLLECT_TEST_SANITIZERS=no leaves the last two out. Tests that skipped themselves are named at the end,
# with the reason. COLLECT_TEST_CHDB=yes fetches ClickHouse's newest engine, for tests that skip without it.
set -euo pipefail
cd "$(dirname "$0")/.."
source deploy/setup.sh
source deploy/phases.sh

packages() {
  install_packages build test
  # Without it the tests of other architectures skip, and say so.
  bash deploy/cross-tools.sh >"$logs/cross-tools.log" 2>&1 ||
    say "Skipped: what cross builds need could not be fetched (see build/logs/cross-tools.log)."
}
release_build() { build_preset release; }

release_tests() {
  find_grpc_clients
  find_wtf_reader
  find_duckdb
  # 550 MB, for the tests of files that ClickHouse reads in place.
  chdb_path=
  [ "${COLLECT_TEST_CHDB:-no}" = no ] || find_chdb
  export COLLECT_BUF=$buf COLLECT_GRPCURL=$grpcurl
  local node_paths=$node_path${duckdb_path:+:$duckdb_path}${chdb_path:+:$chdb_path}
  if [ -n "$node_paths" ]; then export NODE_PATH=$node_paths; fi
  rm -rf "$logs/gtest" "$logs/failed-beside-others.log"
  export GTEST_OUTPUT=xml:$logs/gtest/
  local last=build/release/Testing/Temporary status=0
  ctest --test-dir build/release --output-on-failure --no-tests=error -j "$(nproc)" 2>&1 |
    tee "$logs/ctest-release.log" || status=$?
  cp "$last/LastTest.log" "$logs/tests-release.log"
  [ $status = 0 ] || run_again "$last/LastTestsFailed.log"
}

# run_again LIST: tests that failed while others ran beside them, once more and alone, as far as they
# are few. What is wrong fails again; what a busy machine did is said at the end.
few_failed=3
run_again() {
  if [ "$(wc -l <"$1")" -gt $few_failed ]; then return 1; fi
  cut -d: -f2 "$1" >"$logs/failed-beside-others.log"
  say "Once more, alone: $(paste -sd' ' "$logs/failed-beside-others.log")"
  ctest --test-dir build/release --rerun-failed --output-on-failure 2>&1 |
    tee -a "$logs/ctest-release.log"
}

# What a new user types, on the build that is there. What it records is removed, unless somebody has
# sessions of their own in its folder.
quick_start() {
  local had=no
  if [ -d build/quickstart ]; then had=yes; fi
  quietly quickstart bash deploy/quickstart.sh
  grep ' calls and returns have registers' "$logs/quickstart.log"
  if [ $had = no ]; then rm -rf build/quickstart; fi
}

fuzz() {
  quietly configure-fuzz cmake --preset fuzz
  quietly build-fuzz cmake --build build/fuzz --target tests/fuzz/all
  ctest --test-dir build/fuzz --output-on-failure --no-tests=error -j "$(nproc)" -L fuzz 2>&1 |
    tail -n 60
}

# sanitized PRESET CTEST_OPTIONS…: builds and runs the tests that ctest selects with these options.
sanitized() {
  local preset=$1 tests
  shift
  quietly "configure-$preset" cmake --preset "$preset"
  # A test program has the name of its test; a test without one runs a program of another.
  tests=$(comm -12 \
    <(ctest --test-dir "build/$preset" -N "$@" |
        sed -n 's/^ *Test *#[0-9]*: \([^ ]*\).*/\1/p' | sort) \
    <(ninja -C "build/$preset" -t targets all | sed -n 's/^\([a-z0-9_]*\): phony$/\1/p' | sort))
  [ -n "$tests" ] || fail "ctest selects no test with $*"
  # shellcheck disable=SC2086
  quietly "build-$preset" cmake --build "build/$preset" --target $tests
  ctest --test-dir "build/$preset" --output-on-failure --no-tests=error -j "$(nproc)" "$@" 2>&1 |
    tail -n 60
}

# Tests of the whole and of the source text say nothing more under a sanitizer.
asan() { sanitized asan -E '^(e2e_|tidy_|agent_header|bench_)'; }
tsan() { sanitized tsan -R 'ring|recorder|drain|agent|ingest|collector|watch|control' \
  -E '^(e2e_|tidy_|agent_header|bench_)'; }

for needed in packages "release build"; do
  phase "$needed" 0 "${needed// /_}"
  [ $phase_status = 0 ] || fail "$needed failed, and nothing goes without it"
done
phase "release tests" 0 release_tests
phase "quick start" 0 quick_start
phase "fuzz targets, 5 s each" 420 fuzz
if [ "${COLLECT_TEST_SANITIZERS:-yes}" = yes ]; then
  phase "rooms under ASan + UBSan" 300 asan
  phase "threads under TSan" 300 tsan
fi

say ""
if [ -f "$logs/ctest-release.log" ]; then
  python3 deploy/skipped_tests.py "$logs/gtest" "$logs/ctest-release.log" \
    "$logs/tests-release.log"
fi
if [ -s "$logs/failed-beside-others.log" ]; then
  say "Failed while other tests ran: $(paste -sd' ' "$logs/failed-beside-others.log")"
fi
status=0
end_phases || status=$?
# CTest's own words on the release tests, last.
[ -f "$logs/ctest-release.log" ] && grep -E '% tests passed' "$logs/ctest-release.log" || true
exit $status
