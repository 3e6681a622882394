#!/usr/bin/env bash
# A fleet in small, on one machine:  bash deploy/small-fleet.sh
#
# Starts a store that speaks S3 and two collectors, records a program that knows both, kills the first
# collector in mid-run, and starts it again. Each collector stores its part and copies it to the store.
# Then both parts are fetched from there, joined into one session, checked, and asked a question.
#
# The store is radosgw where its packages are installed and this is root (apt install
# --no-install-recommends radosgw ceph-mon ceph-osd); otherwise the server that the tests use, which
# keeps everything in memory. SQL is answered by duckdb, or by DuckDB's npm package where that can be had.
set -euo pipefail
cd "$(dirname "$0")/.."
source deploy/setup.sh

step() { printf '\n%s\n' "== $*"; }
# Shows a command as one would type it, and runs it.
shown() {
  printf '$'
  printf ' %s' "${@@Q}" | sed "s/'\([A-Za-z0-9_./:-]*\)'/\1/g"
  printf '\n'
  "$@"
}
work=$root/build/small-fleet
running=()
end_all() {
  for pid in "${running[@]}"; do kill "$pid" 2>/dev/null || true; done
  for pid in "${running[@]}"; do wait "$pid" 2>/dev/null || true; done
  exec 8>&- || true
}
trap end_all EXIT

step "1/5  Packages and build (the logs are in build/logs)"
install_packages build
build_preset release collectord collectctl collect-store collect_agent json_iso_codes
bin=$root/build/release/bin
agent=$(echo "$root"/build/release/lib/libcollect_agent.so)
if ! command -v duckdb >/dev/null; then
  find_duckdb
  if [ -n "$duckdb_path" ]; then
    export NODE_PATH=$duckdb_path PATH=$root/deploy/duckdb:$PATH
  fi
fi

step "2/5  A store and two collectors"
rm -rf "$work"
mkdir -p "$work"
export AWS_ACCESS_KEY_ID=FAKEACCESSKEY AWS_SECRET_ACCESS_KEY=fake/secret+key
mkfifo "$work/store-input" "$work/store-port"
# They end with their standard input.
if [ "$(id -u)" = 0 ] && command -v radosgw >/dev/null && command -v ceph-osd >/dev/null; then
  say "radosgw starts, which takes some ten seconds …"
  python3 -B tests/daemon/upload/radosgw_server.py traces "$AWS_ACCESS_KEY_ID" "$AWS_SECRET_ACCESS_KEY" \
    <"$work/store-input" >"$work/store-port" 2>"$work/store.log" &
else
  python3 -B tests/daemon/upload/fake_s3.py traces <"$work/store-input" >"$work/store-port" 2>"$work/store.log" &
fi
running+=($!)
exec 8>"$work/store-input"
read -r port <"$work/store-port" || fail "the store did not start: $(tail -n 3 "$work/store.log")"
export AWS_ENDPOINT_URL=http://127.0.0.1:$port
say "The store is s3://traces at $AWS_ENDPOINT_URL."

# start_collector NAME INGEST: sets `pid`, `ingest` and `control`.
start_collector() {
  rm -f "$work/$1.ready"
  "$bin/collectord" --root "$work/$1" --ingest "$2" --control 127.0.0.1:0 --adb off --usbmux off \
    --resume-ms 2000 --store s3://traces --ready-fd 3 3>"$work/$1.ready" >>"$work/$1.log" 2>&1 &
  pid=$!
  running+=("$pid")
  for _ in $(seq 100); do
    grep -q control "$work/$1.ready" && break
    kill -0 "$pid" 2>/dev/null || fail "collector $1 did not start: $(tail -n 3 "$work/$1.log")"
    sleep 0.1
  done
  ingest=$(sed -n 's/.*"ingest":"\([^"]*\)".*/\1/p' "$work/$1.ready")
  control=$(sed -n 's/.*"control":"\([^"]*\)".*/\1/p' "$work/$1.ready")
}
start_collector a 127.0.0.1:0
first=$pid first_ingest=$ingest first_control=$control
start_collector b 127.0.0.1:0
second_ingest=$ingest second_control=$control
say "Collector a takes agents at $first_ingest, collector b at $second_ingest."

step "3/5  Record, and kill collector a in mid-run"
say "$ LD_PRELOAD=libcollect_agent.so COLLECT_CONNECT=$first_ingest,$second_ingest json_iso_codes 2 4 100"
LD_PRELOAD=$agent COLLECT_CONNECT=$first_ingest,$second_ingest COLLECT_FULL=wait \
  "$bin/json_iso_codes" 2 4 100 >"$work/program.log" 2>&1 &
program=$!
running+=("$program")
# sum_of KEY CONTROL: over the sessions of a collector.
sum_of() {
  "$bin/collectctl" --control "$2" --json sessions 2>/dev/null |
    grep -o "\"$1\":[0-9]*" | cut -d : -f 2 | paste -sd+ | sed 's/^$/0/' | tr -d '\n' | { read -r sum; echo $((sum)); }
}
# wait_until WHAT COMMAND…
wait_until() {
  local what=$1
  shift
  for _ in $(seq 1200); do
    "$@" && return
    sleep 0.1
  done
  fail "$what did not happen within two minutes; logs are in $work"
}
has_events() { [ "$(sum_of events "$1")" -gt "$2" ]; }
wait_until "a million events at collector a" has_events "$first_control" 1000000
shown kill -9 "$first"
wait "$first" 2>/dev/null || true
say "The program continues at collector b …"
wait_until "a million events at collector b" has_events "$second_control" 1000000
start_collector a "$first_ingest"
say "Collector a is back, and seals what it had."
wait "$program" || fail "the program failed: $(tail -n 5 "$work/program.log")"

step "4/5  Both parts are in the store"
part_count() { "$bin/collectctl" sessions --store s3://traces --json 2>/dev/null | grep -o '"path":"s3:' | wc -l; }
has_parts() { [ "$(part_count)" -ge 2 ]; }
wait_until "the upload of both parts" has_parts
shown "$bin/collectctl" sessions --store s3://traces
shown "$bin/collectctl" download s3://traces -o "$work/parts"
shown "$bin/collectctl" merge "$work/parts" -o "$work/merged"
rm -r "$work/parts"
shown "$bin/collectctl" verify "$work/merged"

step "5/5  A question about all of it"
question="SELECT name, calls, round(total_ns / 1e6) AS total_ms FROM functions ORDER BY calls DESC LIMIT 5"
if command -v duckdb >/dev/null; then
  shown "$bin/collectctl" query "$question" "$work/merged"
else
  say "No duckdb is here, so the report answers it:"
  shown "$bin/collectctl" report --sort calls --limit 5 "$work/merged"
fi
cat <<END

Done. The joined session is in $work/merged ($(du -sh "$work/merged" | cut -f 1)). The store and the collectors end with
this script. What to try next:
  ${NODE_PATH:+NODE_PATH=$NODE_PATH PATH=$root/deploy/duckdb:\$PATH \\
  }$bin/collectctl query 'SELECT sum(events), sum(lost_events) FROM sessions' $work/merged
  rm -r $work                     gives the space back
END
