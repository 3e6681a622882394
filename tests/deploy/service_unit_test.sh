#!/bin/bash
# The systemd unit under a real systemd: in namespaces of its own, whose /etc, /run, /tmp and /var
# are memory, the service is started, records a program, is reloaded and stopped. Skips (77) where
# no such namespaces are to be had.
#   service_unit_test.sh SOURCE_DIR BIN_DIR LIB_DIR TRACED_PROGRAM
set -u
source_dir=$1 bin_dir=$2 lib_dir=$3 program=$4

skip() { echo "skipped: $*"; exit 77; }

if [ "${COLLECT_INSIDE:-}" = stage ]; then
  # In the new namespaces, as their first process. What is needed is copied before /tmp is hidden.
  set -e
  mount --make-rprivate /
  mount -t tmpfs -o mode=755 tmpfs /run  # as systemd has it: who else could write it might listen
  mkdir -p /run/collect/bin /run/collect/lib
  cp "$bin_dir"/collectord "$bin_dir"/collectctl "$bin_dir"/collect-symbolizer "$program" \
    /run/collect/bin/
  cp "$lib_dir"/libcollect_agent.so /run/collect/lib/
  cp "$source_dir"/deploy/systemd/* "$source_dir"/deploy/collectord.toml "$0" /run/collect/
  mkdir -p /run/etc/systemd/system/collectord.service.d /run/etc/collectord
  for directory in /tmp /var /etc/systemd; do mount -t tmpfs tmpfs $directory; done
  mkdir -p /var/lib/systemd /var/tmp /etc/systemd/system/collectord.service.d
  cp /run/collect/collectord.service /etc/systemd/system/
  # The programs and the settings lie elsewhere here, no one has made the
  # user, and nothing of the machine's own start-up is wanted.
  cat > /etc/systemd/system/collectord.service.d/test.conf <<EOF
[Unit]
DefaultDependencies=no
After=
[Service]
DynamicUser=yes
ExecStart=
ExecStart=/run/collect/bin/collectord --root /var/lib/collectord --config /run/collect/collectord.toml --ingest unix:/run/collectord/ingest.sock --control unix:/run/collectord/control.sock
EOF
  mount -t proc proc /proc
  COLLECT_INSIDE=drive bash /run/collect/service_unit_test.sh "$@" &
  # What runs in a container may end with an exit code.
  exec env container=namespaces /lib/systemd/systemd --system --log-target=null --show-status=no --unit=collectord.service
fi

if [ "${COLLECT_INSIDE:-}" = drive ]; then
  fail() { echo "FAILED: $*"; systemctl status collectord --no-pager 2>&1; systemctl exit 1; exit 1; }
  for _ in $(seq 100); do
    [ "$(systemctl is-active collectord 2>/dev/null)" = active ] && break
    sleep 0.1
  done
  [ "$(systemctl is-active collectord)" = active ] || fail "the service does not become active"
  pid=$(systemctl show -p MainPID --value collectord)
  grep -q '^CapEff:.0000000000000000$' /proc/$pid/status || fail "it has capabilities"
  grep -q '^NoNewPrivs:.1$' /proc/$pid/status || fail "it may gain privileges"
  grep -q '^Seccomp:.2$' /proc/$pid/status || fail "no system call filter holds"
  [ "$(awk '/^Uid:/ {print $2}' /proc/$pid/status)" != 0 ] || fail "it runs as root"
  export COLLECT_CONTROL=unix:/run/collectord/control.sock
  cd /tmp
  /run/collect/bin/collectctl run -- \
    /run/collect/bin/"$(basename "$program")" || fail "a program cannot be recorded"
  /run/collect/bin/collectctl download -o /tmp/copy || fail "the session cannot be fetched"
  /run/collect/bin/collectctl verify /tmp/copy || fail "the session does not hold"
  grep -q '"state": "complete"' /tmp/copy/manifest.json || fail "the session is not complete"
  systemctl reload collectord || fail "it cannot be reloaded"
  [ "$(systemctl show -p MainPID --value collectord)" = "$pid" ] || fail "a reload ended it"
  systemctl stop collectord || fail "it cannot be stopped"
  [ "$(systemctl show -p Result --value collectord)" = success ] || fail "it did not end well"
  [ -s /var/lib/collectord/session_*/pid_*/manifest.json ] || fail "the state directory is empty"
  echo "the service was started, recorded a program, was reloaded and stopped"
  systemctl exit 0
  exit 0
fi

[ "$(id -u)" = 0 ] || skip "namespaces with a systemd of their own need root"
command -v unshare > /dev/null && [ -x /lib/systemd/systemd ] || skip "unshare or systemd is missing"
unshare --mount --pid --fork --uts --ipc --cgroup true 2> /dev/null || skip "no namespaces here"
command -v systemd-analyze > /dev/null || skip "systemd-analyze is missing"

level=$(systemd-analyze security --offline=true --no-pager "$source_dir"/deploy/systemd/collectord.service |
        sed -n 's/.*Overall exposure level[^0-9]*\([0-9.]*\).*/\1/p')
echo "systemd-analyze security: exposure level $level"
awk -v level="$level" 'BEGIN { exit !(level != "" && level < 2) }' || { echo "FAILED: above 2"; exit 1; }

log=$(mktemp)
trap 'rm -f "$log"' EXIT
COLLECT_INSIDE=stage timeout -s KILL 60 \
  unshare --kill-child=KILL --mount --pid --fork --uts --ipc --cgroup bash "$0" "$@" \
  > "$log" 2>&1 < /dev/null
cat "$log"
if grep -q '^the service was started' "$log"; then exit 0; fi
grep -q '^FAILED' "$log" && exit 1
skip "systemd does not come up in namespaces here"
