#!/usr/bin/env bash
# Prints where we stand against the performance contract:  tests/bench/run.sh [--brief] [DIRECTORY]
#
# DIRECTORY holds the benchmarks, build/release/bin/bench by default. The machine should have nothing
# else to do. --brief takes a few seconds, proves that everything runs, and measures nothing.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)

repeats=5 pairs=4000000 megabytes=1500 million=40 rounds=1 seconds=2 agents=1000 idle=10000 brief= views=200 windows=1000
if [ "${1:-}" = --brief ]; then
  brief=1 repeats=1 pairs=100000 megabytes=40 million=1 rounds=0 seconds=0.05 agents=20 idle=40 views=2 windows=5
  echo "Brief: this proves that everything runs. The figures below mean nothing."
  shift
fi
programs=${1:-$root/build/release/bin/bench}
[ -x "$programs/bench_hooks" ] || {
  echo "no benchmarks in $programs; build them: cmake --build --preset release" >&2
  exit 2
}

echo "== hooks: ns of the traced thread's CPU for one call + return"
"$programs/bench_hooks" --repeats "$repeats" --pairs "$pairs"
echo
echo "== ingest: CPU seconds for each GB stored, beside a bare read + write sink"
disk=$(mktemp -d "$programs/ingest_XXXXXX")
trap 'rm -rf "$disk"' EXIT
if [ -n "$brief" ]; then
  "$programs/bench_ingest" "$megabytes" 1 "$disk"
else
  "$programs/bench_ingest" "$megabytes" "$repeats" /dev/shm "$disk"
fi
echo
echo "== durability: fsync beside os, on the disk of the build"
"$programs/bench_durability" "$megabytes" "$repeats" "$disk"
echo
echo "== end to end, and memory"
"$programs/bench_end_to_end" "$million" "$((repeats > 3 ? 3 : repeats))"
echo
echo "== many agents, many connections"
"$programs/bench_load" "$agents" "$idle" "$seconds"
echo
echo "== slow links"
"$programs/bench_link" "$rounds"
echo
echo "== phones"
"$programs/bench_phones" "$repeats"
echo
echo "== readers"
"$programs/bench_readers" --benchmark_min_time="$seconds"
echo
echo "== views: a large capture in the browser"
python3 -B "$root/tests/bench/commands/views.py" --million "$views" --windows "$windows" \
  --directory "$disk" "$programs/.."
for format in rtc wtf dial9 parquet; do
  echo
  echo "== $format"
  "$programs/bench_$format" --benchmark_min_time="$seconds"
done
