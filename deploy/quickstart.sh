#!/usr/bin/env bash
# From a bare Debian 12 to a recorded program:  bash deploy/quickstart.sh
#
# Installs what is missing, builds, then does the main job: a program that parses JSON on four threads
# with a library of 24,000 lines that knows nothing of us is traced, function by function, into files;
# while it runs, detail recording is switched on and off through gRPC. Takes a few minutes the first
# time, most of it the build, and a few seconds when run again. In a terminal the collector continues
# serving its live page at the end, until Ctrl-C.
set -euo pipefail
cd "$(dirname "$0")/.."
source deploy/setup.sh

step() { printf '\n%s\n' "== $*"; }
# Shows a command as one would type it, and runs it.
shown() {
  printf '$ %s\n' "$*"
  "$@"
}

step "1/5  Packages"
install_packages build
find_grpc_clients

step "2/5  Build (the log is build/logs/build-release.log)"
build_preset release collectord collectctl collect_agent json_iso_codes
say "Programs are in build/release/bin, the agent is build/release/lib/libcollect_agent.so."
bin=build/release/bin

step "3/5  Record"
traces=$root/build/quickstart
mkdir -p "$traces"
ingest=127.0.0.1:7710 control=127.0.0.1:7711 web=127.0.0.1:7712
for port in 7710 7711 7712; do
  if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
    say "Port $port is in use, so this run takes free ports instead of the usual 7710 and 7711."
    ingest=127.0.0.1:0 control=127.0.0.1:0 web=127.0.0.1:0
  fi
done
rm -f "$logs/ready"
"$bin/collectord" --root "$traces" --ingest "$ingest" --control "$control" --web "$web" --ready-fd 3 \
  3>"$logs/ready" >"$logs/collectord.log" 2>&1 &
daemon=$!
trap 'kill "$daemon" 2>/dev/null || true; wait "$daemon" 2>/dev/null || true' EXIT
for _ in $(seq 100); do
  grep -q control "$logs/ready" && break
  kill -0 "$daemon" 2>/dev/null || fail "collectord did not start: $(tail -n 3 "$logs/collectord.log")"
  sleep 0.1
done
control=$(sed -n 's/.*"control":"\([^"]*\)".*/\1/p' "$logs/ready")
page=$(sed -n 's/.*"web":"\([^"]*\)".*/\1/p' "$logs/ready")
say "collectord is running: files go to $traces, control is at $control."
say "Its live page, for your browser: $page"
say "A program is now traced. It was built with -finstrument-functions and needs no other change:"
say "$ collectctl run -- json_iso_codes 2 4 250"
"$bin/collectctl" --control "$control" run -- \
  "$bin/json_iso_codes" 2 4 250 >"$logs/run.log" 2>&1 &
job=$!

# A generic gRPC client: it knows nothing but the address, the rest comes by reflection.
service=collect.control.v1.Collector
list_methods() {
  if [ -n "$grpcurl" ]; then
    say "$ grpcurl -plaintext $control list $service"
    "$grpcurl" -plaintext "$control" list "$service"
  else
    say "$ buf curl --protocol grpc --http2-prior-knowledge --list-methods http://$control"
    "$buf" curl --protocol grpc --http2-prior-knowledge --list-methods "http://$control"
  fi
}
# call METHOD [FILE]: with an empty request, which does the obvious thing. The answer goes to FILE.
call() {
  # Not /dev/stdout: to open it again cuts a file that the output goes to.
  local to=1
  if [ $# = 2 ]; then exec {to}>"$2"; fi
  if [ -n "$grpcurl" ]; then
    say "$ grpcurl -plaintext -d '{}' $control $service/$1"
    "$grpcurl" -plaintext -d '{}' "$control" "$service/$1" >&"$to"
  else
    say "$ buf curl --protocol grpc --http2-prior-knowledge -d '{}' http://$control/$service/$1"
    "$buf" curl --protocol grpc --http2-prior-knowledge -d '{}' "http://$control/$service/$1" >&"$to"
  fi
  if [ $# = 2 ]; then exec {to}>&-; fi
}
# The beginnings of lines that are longer than so many characters end in "…".
narrow() { sed -E "s/^(.{$(($1 - 1))}).{2,}$/\\1…/"; }

# The sessions that record now, one a line. Those of earlier runs are in the same folder.
recording() {
  "$bin/collectctl" --control "$control" --json sessions json_iso_codes 2>/dev/null |
    grep -o '{[^{}]*"state":"recording"[^{}]*}' || true
}
# How many detail records the collector has of them.
detail_records() {
  recording | sed -n 's/.*"detail_records":\([0-9]*\).*/\1/p' | head -n 1
}
# wait_while_running WHAT COMMAND…: until COMMAND prints something else than nothing and 0.
wait_while_running() {
  local what=$1 got=''
  shift
  while true; do
    got=$("$@")
    [ "${got:-0}" = 0 ] || break
    kill -0 "$job" 2>/dev/null || fail "the program ended before $what: $(tail -n 20 "$logs/run.log")"
    sleep 0.05
  done
  printf '%s\n' "$got"
}
wait_while_running "its recording began" recording >"$logs/recording.log"

step "4/5  Steer it while it runs"
if [ -n "$grpcurl$buf" ]; then
  say "What can be called (found by reflection):"
  list_methods
  say "Detail on: from now on every call also stores registers and stack bytes."
  call StartDetail
  arrived=$(wait_while_running "a detail record arrived" detail_records)
  say "$arrived detail records have arrived. Detail off again:"
  call StopDetail
  say "The manifest, while recording (its first lines):"
  call GetManifest "$logs/manifest.log"
  head -n 12 "$logs/manifest.log" | narrow 120
else
  say "Neither grpcurl nor buf is here; collectctl does the same:"
  shown "$bin/collectctl" --control "$control" detail start
  arrived=$(wait_while_running "a detail record arrived" detail_records)
  say "$arrived detail records have arrived. Detail off again:"
  shown "$bin/collectctl" --control "$control" detail stop
  shown "$bin/collectctl" --control "$control" inspect --at-collector >"$logs/manifest.log"
fi
say "Waiting for the program to end …"
wait "$job" || fail "the traced program failed: $(tail -n 20 "$logs/run.log")"
cat "$logs/run.log"

step "5/5  Look at it"
session=$(find "$traces" -mindepth 2 -maxdepth 2 -type d -name 'pid_*' -printf '%T@ %p\n' |
  sort -n | tail -n 1 | cut -d ' ' -f 2-)
shown "$bin/collectctl" verify "$session"
stored=0
for file in "$session"/thread_*/detail.atf; do
  [ -e "$file" ] || continue
  stored=$((stored + $("$bin/collectctl" dump --json "$file" | wc -l)))
done
[ "$stored" -ge "$arrived" ] ||
  fail "$arrived detail records arrived, and $stored are in the files of $session"
say "$stored calls and returns have registers and stack bytes."
say ""
say "The functions that computed most, and those that waited:"
shown "$bin/collectctl" report --limit 12 "$session" >"$logs/report.log"
narrow 150 <"$logs/report.log"
say ""
say "Some events, as they happened:"
("$bin/collectctl" dump "$session/thread_1" 2>/dev/null || true) | head -n 8 | narrow 150

cat <<END

Done. Everything that was recorded is in
  $session   ($(du -sh "$session" | cut -f 1))

What to try next:
  export PATH=$root/$bin:\$PATH    so that this shell finds collectctl and collectord
  collectctl open                        this recording in the browser: flame graph and time line
  collectctl report
  collectctl dump --json | head
  collectord --root $traces --web
and, in another terminal with that PATH:
  collectctl run -- ./your_program       (built with -finstrument-functions)
  collectctl top                         (and: dump --follow, detail start, detail stop, sessions, watch)
  rm -r $traces                          gives the space back
deploy/guide/tutorial.md and deploy/guide/how-to.md have the rest.
END

if [ -t 1 ]; then
  cat <<END

The live page, with this recording and those that you make now (press Ctrl-C to end it):
  $page
In another terminal:
  $root/$bin/collectctl --control $control run -- ./your_program
END
  trap 'say ""; exit 0' INT
  wait "$daemon" || fail "collectord ended: $(tail -n 3 "$logs/collectord.log")"
else
  say "The live page ends with this script, because its output is no terminal: $page"
fi
