#!/usr/bin/env bash
# Installs what is missing, builds, and runs tests:
#
#   bash deploy/test.sh            the fast tier, which CI runs
#   bash deploy/test.sh nightly    everything else; hours on two cores
#
# tests/tiers.txt names the tier of each test. Fast: unit and tidy tests, those of formats, wire and storage
# with these rooms under ASan+UBSan, a dozen end-to-end ones. Nightly: the other tests, the quick start as a
# new user runs it, the fuzz targets for a few seconds each, all rooms and their tests under ASan+UBSan,
# threads under TSan.
# Up to three tests that fail beside others are run once more, alone, and named. What was skipped is listed
# at the end with the reason, and the twenty slowest. COLLECT_TEST_CHDB=yes fetches ClickHouse's newest
# engine (550 MB), for nightly tests that skip without it.
set -euo pipefail
cd "$(dirname "$0")/.."
source deploy/setup.sh
source deploy/phases.sh
tier=${1:-fast}
case $tier in fast|nightly) ;; *) sed -n '2,/^set/{/^set/!s/^# \{0,1\}//p}' deploy/test.sh; exit 2 ;; esac
build=build/release
# Of one test, in seconds; power_loss_test took 1,484 beside three others on a slow machine.
test_limit=$([ "$tier" = fast ] && echo 1500 || echo 4500)

# tests_of TIER: as a regular expression for ctest.
tests_of() { printf '^(%s)$' "$(sed -n "s/^$1 //p" tests/tiers.txt | paste -sd'|')"; }

packages() {
  install_packages build test
  [ "$tier" = nightly ] || return 0
  install_packages nightly
  # Without it the tests of other architectures skip, and say so.
  bash deploy/cross-tools.sh >"$logs/cross-tools.log" 2>&1 ||
    say "Skipped: what cross builds need could not be fetched (see build/logs/cross-tools.log)."
}

release_build() {
  if [ "$tier" = fast ]; then build_preset release fast_tests; else build_preset release all tests/all; fi
}

tests() {
  find_grpc_clients
  find_wtf_reader
  find_duckdb
  chdb_path=
  [ "${COLLECT_TEST_CHDB:-no}" = no ] || find_chdb
  export COLLECT_BUF=$buf COLLECT_GRPCURL=$grpcurl
  local node_paths=$node_path${duckdb_path:+:$duckdb_path}${chdb_path:+:$chdb_path}
  if [ -n "$node_paths" ]; then export NODE_PATH=$node_paths; fi
  rm -rf "$logs/gtest" "$logs/failed-beside-others.log"
  export GTEST_OUTPUT=xml:$logs/gtest/ GTEST_BRIEF=1
  local last=$build/Testing/Temporary status=0
  # More than there are processors: tests spend more than a third of their time waiting.
  run_tests "$build" -R "$(tests_of "$tier")" -j $((2 * $(nproc))) || status=$?
  cp "$logs/ctest.log" "$logs/ctest-$tier.log"
  cp "$last/LastTest.log" "$logs/tests-$tier.log"
  [ $status = 0 ] || run_again "$last/LastTestsFailed.log"
}

# run_tests DIRECTORY CTEST_OPTIONS…
run_tests() {
  local directory=$1
  shift
  python3 deploy/progress.py "$logs/ctest.log" \
    ctest --test-dir "$directory" --timeout "$test_limit" --output-on-failure --no-tests=error "$@"
}

# run_again LIST: tests that failed while others ran beside them, once more and alone, as far as they
# are few. What is wrong fails again; what a busy machine did is printed at the end.
few_failed=3
run_again() {
  if [ "$(wc -l <"$1")" -gt $few_failed ]; then return 1; fi
  cut -d: -f2 "$1" >"$logs/failed-beside-others.log"
  say "Once more, alone: $(paste -sd' ' "$logs/failed-beside-others.log")"
  run_tests "$build" --rerun-failed
}

# What a new user types, on the build that is there. What it records is removed, unless it was there.
quick_start() {
  local had=no
  if [ -d build/quickstart ]; then had=yes; fi
  quietly quickstart bash deploy/quickstart.sh
  grep ' calls and returns have registers' "$logs/quickstart.log"
  if [ $had = no ]; then rm -rf build/quickstart; fi
}

fuzz() {
  build_preset fuzz tests/fuzz/all
  run_tests build/fuzz -j "$(nproc)" -L fuzz
}

# sanitized PRESET ROOM… -- CTEST_OPTIONS…: builds the tests of these folders, with the collector that some
# of them start, and runs them.
sanitized() {
  local preset=$1 room rooms=() status=0
  shift
  while [ "$1" != -- ]; do rooms+=("$1"); shift; done
  shift
  build_preset "$preset" collectord "${rooms[@]/%//all}"
  rm -f "$logs/ctest-$preset.log"
  for room in "${rooms[@]}"; do
    run_tests "build/$preset/$room" -j "$(nproc)" "$@" || status=$?
    cat "$logs/ctest.log" >>"$logs/ctest-$preset.log"
  done
  return $status
}

# Tests of the whole and of the source text say nothing more under a sanitizer.
asan() {
  sanitized asan tests/formats tests/proto tests/storage tests/agent tests/daemon -- \
    -E '^agent_(arm64|android|apple|header)'
}
tsan() {
  sanitized tsan tests/agent tests/daemon -- -R 'ring|recorder|drain|agent|ingest|collector|watch|control' \
    -E '^agent_(arm64|android|apple|header)'
}

for needed in packages "release build"; do
  phase "$needed" "${needed// /_}"
  [ $phase_status = 0 ] || fail "$needed failed, and nothing goes without it"
done
phase "$tier tests" tests
if [ "$tier" = nightly ]; then
  phase "quick start" quick_start
  phase "fuzz targets, 5 s each" fuzz
  phase "all rooms under ASan + UBSan" asan
  phase "threads under TSan" tsan
fi

say ""
if [ -f "$logs/ctest-$tier.log" ]; then
  python3 deploy/skipped_tests.py "$logs/gtest" "$logs/ctest-$tier.log" "$logs/tests-$tier.log"
fi
if [ -s "$logs/failed-beside-others.log" ]; then
  say "Failed while other tests ran: $(paste -sd' ' "$logs/failed-beside-others.log")"
fi
status=0
end_phases || status=$?
# CTest's own words on the tests, last.
[ -f "$logs/ctest-$tier.log" ] && grep -E '% tests passed' "$logs/ctest-$tier.log" || true
exit $status
