#!/bin/bash
# The Debian packages: what is in them, and what installing, upgrading, removing and purging them
# does under a real systemd. That happens in namespaces of its own (mounts, processes, network) on
# an overlay of a Debian 12, of which nothing is written: this machine's own root, or ROOT.
# Skips (77) what this machine has no means for, and says so.
#   debian_package_test.sh SOURCE_DIR BUILD_DIR TRACED_PROGRAM [ROOT]
set -u
source_dir=$1 build_dir=$2 program=$3 lower=${4:-/}

skip() { echo "skipped: $*"; exit 77; }

if [ "${COLLECT_INSIDE:-}" = stage ]; then
  # The first process of the namespaces: builds the new root, goes there, becomes systemd.
  set -e
  mount --make-rprivate /
  mount -t tmpfs tmpfs "$COLLECT_SCRATCH/disk"
  cd "$COLLECT_SCRATCH/disk"
  mkdir upper work root
  mount -t overlay overlay -o "lowerdir=$lower,upperdir=upper,workdir=work" root
  cd root
  mkdir -p proc sys dev run tmp
  mount -t proc proc proc
  mount -t sysfs -o ro sysfs sys
  mount -t cgroup2 cgroup2 sys/fs/cgroup
  for directory in dev run tmp; do mount -t tmpfs -o mode=755 tmpfs $directory; done
  chmod 1777 tmp
  for device in null zero full random urandom tty; do
    touch dev/$device
    mount --bind /dev/$device dev/$device
  done
  mkdir dev/shm dev/pts run/collect
  mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
  ln -s pts/ptmx dev/ptmx
  ln -s /proc/self/fd dev/fd
  cp "$COLLECT_SCRATCH"/*.deb "$program" run/collect/
  cp "$0" run/collect/test.sh
  # Images of containers forbid their packages to start services.
  rm -f usr/sbin/policy-rc.d
  # Nothing of the machine's own start-up is wanted.
  cat > etc/systemd/system/collect-test.target <<END
[Unit]
DefaultDependencies=no
END
  for unit in collectord.service collectord.socket collectord-control.socket; do
    mkdir -p etc/systemd/system/$unit.d
    printf '[Unit]\nDefaultDependencies=no\n' > etc/systemd/system/$unit.d/test.conf
  done
  printf '[Service]\nStandardError=append:/run/collect/collectord.log\n' \
    >> etc/systemd/system/collectord.service.d/test.conf
  mkdir -p old_root
  pivot_root . old_root
  cd /
  umount -l old_root
  COLLECT_INSIDE=drive PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    bash /run/collect/test.sh "$source_dir" "$build_dir" "$program" "$lower" &
  # What runs in a container may end with an exit code.
  exec env container=namespaces /lib/systemd/systemd --system --log-target=null --show-status=no --unit=collect-test.target
fi

if [ "${COLLECT_INSIDE:-}" = drive ]; then
  fail() {
    echo "FAILED: $*"
    systemctl status 'collectord*' --no-pager 2>&1
    cat /run/collect/collectord.log
    systemctl exit 1
    exit 1
  }
  eventually() {  # eventually COMMAND…: within 30 s
    for _ in $(seq 300); do "$@" > /dev/null 2>&1 && return; sleep 0.1; done
    return 1
  }
  property() { systemctl show -p "$1" --value "${2:-collectord.service}"; }
  install() {
    echo "\$ install $*"
    dpkg -i "$@" < /dev/null
  }
  records() {
    local before
    before=$(sealed)
    (cd /tmp && collectctl run -- "/run/collect/$(basename "$program")") || fail "nothing is recorded"
    [ "$(sealed)" -gt "$before" ] || fail "the session is not complete"
  }
  sealed() { collectctl sessions | grep -c complete; }
  more_are_sealed() { [ "$(sealed)" -gt "$1" ]; }
  gone() { ! systemctl is-active -q "$1"; }
  export DEBIAN_FRONTEND=noninteractive
  eventually systemctl show -p Version || fail "systemd does not answer"
  cd /run/collect

  install ./libcollect-agent_*-1_*.deb ./collectord_*-1_*.deb || fail "the packages can't be installed"
  systemctl is-active -q collectord || fail "the service was not started"
  systemctl is-enabled -q collectord || fail "the service is not enabled"
  systemctl is-enabled -q collectord.socket && fail "the socket is enabled, and no one asked for it"
  pid=$(property MainPID)
  [ "$(ps -o user= -p "$pid" 2> /dev/null || stat -c %U "/proc/$pid")" = collectord ] ||
    fail "it does not run as collectord"
  [ "$(stat -c '%U %a' /var/lib/collectord)" = "collectord 750" ] || fail "modes of /var/lib/collectord"
  [ "$(stat -c '%U %G %a' /run/collectord)" = "collectord collectord 750" ] || fail "modes of /run/collectord"
  for name in ingest control; do
    [ "$(stat -c '%U %G %a' /run/collectord/$name.sock)" = "collectord collectord 660" ] ||
      fail "modes of $name.sock"
  done
  (exec 3<> /dev/tcp/127.0.0.1/7711) 2> /dev/null && fail "it listens on TCP, and no one asked for it"
  # Members of the group get in by the sockets, others don't. A TCP port without TLS may be anybody's:
  # nothing is said to it.
  useradd member && usermod -aG collectord member && useradd other || fail "no users can be made"
  runuser -u member -- collectctl collectors > /dev/null || fail "a member of the group can't use it"
  runuser -u other -- collectctl collectors > /dev/null 2>&1 && fail "everybody can use it"
  cp /etc/collectord/collectord.toml settings
  sed -i -e 's/^ingest = .*/ingest = "127.0.0.1:7710"/' -e 's/^control = .*/control = "127.0.0.1:7711"/' \
    /etc/collectord/collectord.toml
  systemctl restart collectord || fail "it can't listen on TCP"
  for user in member other; do
    runuser -u $user -- collectctl --control 127.0.0.1:7711 collectors 2>&1 |
      grep -q 'another user: nothing was sent' || fail "collectctl does not ask whose a TCP port is"
  done
  cat settings > /etc/collectord/collectord.toml
  systemctl restart collectord || fail "it can't be restarted"
  records
  # What private files need: they belong to the service's user, and a reload finds them.
  echo secret > /etc/collectord/agents.token
  chown collectord /etc/collectord/agents.token && chmod 600 /etc/collectord/agents.token
  echo 'heartbeat_ms = 1999' >> /etc/collectord/collectord.toml
  echo 'token_file = "/etc/collectord/agents.token"' >> /etc/collectord/collectord.toml
  systemctl restart collectord || fail "the service's user can't read its own files"
  rm /etc/collectord/agents.token
  sed -i /token_file/d /etc/collectord/collectord.toml

  pid=$(property MainPID)
  install ./libcollect-agent_*-2_*.deb ./collectord_*-2_*.deb || fail "the packages can't be upgraded"
  systemctl is-active -q collectord || fail "it does not run after an upgrade"
  [ "$(property MainPID)" != "$pid" ] || fail "an upgrade did not restart it"
  grep -q 'heartbeat_ms = 1999' /etc/collectord/collectord.toml || fail "an upgrade lost the settings"
  collectctl sessions | grep -q complete || fail "an upgrade lost the sessions"

  systemctl disable -q --now collectord.service || fail "it cannot be disabled"
  systemctl start collectord.socket collectord-control.socket || fail "the sockets can't be opened"
  gone collectord.service || fail "the sockets alone started it"
  collectctl collectors > /dev/null || fail "a connection does not start it"
  records
  pid=$(property MainPID)
  before=$(sealed)
  # Long enough away that someone connects meanwhile.
  printf '[Service]\nRestartSec=2\n' > /etc/systemd/system/collectord.service.d/away.conf
  systemctl daemon-reload
  kill -KILL "$pid"
  eventually gone collectord.service || fail "it can't be killed"
  agent=$(echo /usr/lib/*/libcollect_agent.so)
  LD_PRELOAD=$agent COLLECT_CONNECT=unix:/run/collectord/ingest.sock "./$(basename "$program")" &
  traced=$!
  [ -S /run/collectord/ingest.sock ] && gone collectord.service ||
    fail "the sockets went with the service"
  collectctl collectors > /dev/null || fail "a client that waits in the socket is not answered"
  wait $traced
  eventually more_are_sealed "$before" || fail "an agent that waited in the socket is not recorded"
  [ "$(property MainPID)" != "$pid" ] || fail "it was not started again"
  systemctl stop collectord.service collectord.socket collectord-control.socket
  # An address that others reach needs TLS, also when systemd listens there.
  printf '[Socket]\nListenStream=\nListenStream=0.0.0.0:7710\n' \
    > /etc/systemd/system/collectord.socket.d/reachable.conf
  systemctl daemon-reload
  systemctl start collectord.socket || fail "the socket can't be opened elsewhere"
  (exec 3<> /dev/tcp/127.0.0.1/7710) || fail "no one listens there"
  refused() { [ "$(property ExecMainStatus)" = 2 ]; }
  eventually refused || fail "it serves other machines without TLS"
  systemctl stop collectord.socket collectord.service
  rm /etc/systemd/system/collectord.socket.d/reachable.conf
  systemctl daemon-reload
  systemctl reset-failed
  systemctl enable -q --now collectord.service || fail "it cannot be enabled again"

  dpkg -r collectord || fail "the package can't be removed"
  gone collectord.service || fail "a removal did not stop the service"
  [ ! -e /usr/bin/collectord ] || fail "a removal left the program"
  [ -e /etc/collectord/collectord.toml ] || fail "a removal took the settings"
  dpkg -P collectord > purge.log || fail "the package can't be purged"
  cat purge.log
  grep -q 'recorded sessions stay in /var/lib/collectord' purge.log || fail "a purge does not name the sessions"
  ls /var/lib/collectord/session_*/pid_*/manifest.json > /dev/null || fail "a purge took the sessions"
  [ ! -e /etc/collectord ] || fail "a purge left the settings"
  [ ! -e /etc/systemd/system/multi-user.target.wants/collectord.service ] || fail "a purge left a link"

  install ./collectord_*-2_*.deb || fail "it can't be installed again"
  systemctl is-active -q collectord || fail "the service was not started again"
  systemctl stop collectord
  rm -r /var/lib/collectord/session_*
  dpkg -P collectord > purge.log || fail "it can't be purged at once"
  [ ! -e /var/lib/collectord ] || fail "a purge left an empty directory"
  echo "installed, recorded, upgraded, activated by its sockets, removed and purged"
  systemctl exit 0
  exit 0
fi

fail() { echo "FAILED: $*"; exit 1; }
command -v dpkg-deb > /dev/null && command -v dpkg-shlibdeps > /dev/null || skip "dpkg-dev is missing"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export COLLECT_SCRATCH=$scratch
mkdir "$scratch/disk"

(cd "$build_dir" && cpack -G DEB -D CPACK_PACKAGE_DIRECTORY="$scratch") > "$scratch/cpack.log" 2>&1 ||
  { cat "$scratch/cpack.log"; fail "the packages can't be made"; }
rm -rf "$scratch/_CPack_Packages"

version=$(sed -n 's/^project(collectord VERSION \([0-9.]*\).*/\1/p' "$source_dir/CMakeLists.txt")
daemon=$(echo "$scratch"/collectord_"$version"-1_*.deb)
agent=$(echo "$scratch"/libcollect-agent_"$version"-1_*.deb)
[ -f "$daemon" ] && [ -f "$agent" ] || fail "not the packages of version $version: $(ls "$scratch")"
head -n 1 "$source_dir/deploy/debian/changelog" | grep -qF "($version-1)" ||
  fail "deploy/debian/changelog does not begin with $version-1"

dpkg-deb --fsys-tarfile "$daemon" | tar -t > "$scratch/daemon.list"
dpkg-deb --fsys-tarfile "$agent" | tar -t > "$scratch/agent.list"
for file in /etc/collectord/collectord.toml /usr/bin/collectord /usr/bin/collectctl \
  /usr/bin/collect-load /usr/bin/collect-conformance \
  /usr/libexec/collectord/collect-symbolizer \
  /usr/libexec/collectord/collect-planner \
  /usr/libexec/collectord/collect-page \
  /usr/libexec/collectord/collect-calls \
  /usr/libexec/collectord/collect-store \
  /usr/libexec/collectord/collect-tui \
  /usr/lib/systemd/system/collectord.service /usr/lib/systemd/system/collectord.socket \
  /usr/lib/systemd/system/collectord-control.socket /usr/lib/sysusers.d/collectord.conf \
  /usr/share/man/man1/collectctl.1.gz /usr/share/man/man1/collectctl-detail-start.1.gz /usr/share/man/man5/collectord.toml.5.gz \
  /usr/share/man/man8/collectord.8.gz /usr/share/bash-completion/completions/collectctl \
  /usr/share/zsh/vendor-completions/_collectctl /usr/share/fish/vendor_completions.d/collectctl.fish \
  /usr/share/doc/collectord/copyright /usr/share/doc/collectord/changelog.Debian.gz \
  /usr/share/doc/collectord/daemon/attach/ATTACH.md \
  /usr/share/doc/collectord/daemon/control/CONTROL.md \
  /usr/share/doc/collectord/deploy/android/README.md /usr/share/doc/collectord/deploy/android/wrap.sh \
  /usr/share/doc/collectord/deploy/ios/README.md /usr/share/doc/collectord/deploy/guide/tutorial.md; do
  grep -qxF ".$file" "$scratch/daemon.list" || fail "$file is not in the package"
done
grep -q '^./usr/lib/[^/]*/libcollect_agent.so$' "$scratch/agent.list" ||
  fail "the agent is not in its package"
# A project finds the agent in its package in any folder.
dpkg-deb -x "$agent" "$scratch/unpacked"
example=$scratch/unpacked/usr/share/doc/libcollect-agent/example
cmake -G Ninja -S "$example" -B "$scratch/example" -DCMAKE_PREFIX_PATH="$scratch/unpacked/usr" > "$scratch/log" &&
  cmake --build "$scratch/example" >> "$scratch/log" || { cat "$scratch/log"; fail "the example does not build by CMake"; }
make -C "$example" PKG_CONFIG_PATH="$(echo "$scratch"/unpacked/usr/lib/*/pkgconfig)" > "$scratch/log" ||
  { cat "$scratch/log"; fail "the example does not build by pkg-config"; }
for built in "$scratch/example/example" "$example/example"; do
  "$built" 100 | grep -q '^agent: ' || fail "$built does not run"
  ldd "$built" | grep -q "=> $scratch/unpacked/usr/lib/.*libcollect_agent.so" || fail "$built has another agent"
done
rm -r "$scratch/unpacked" "$scratch/example"
for package in "$daemon" "$agent"; do
  name=$(basename "$package" | cut -d _ -f 1)
  dpkg-deb -R "$package" "$scratch/$name"
  (cd "$scratch/$name" && md5sum --quiet -c DEBIAN/md5sums) || fail "md5sums of $name"
  dpkg-deb -f "$package" Depends | grep -q 'libc6 (>=' || fail "$name does not depend on its libraries"
  # The next version, which differs in nothing else.
  sed -i "s/$version-1/$version-2/" "$scratch/$name/DEBIAN/control"
  dpkg-deb --root-owner-group -Zgzip -z1 -b "$scratch/$name" "$scratch/$(basename "${package/-1_/-2_}")" > /dev/null
done
[ "$(cat "$scratch/collectord/DEBIAN/conffiles")" = /etc/collectord/collectord.toml ] || fail "conffiles"
documents=$scratch/collectord/usr/share/doc/collectord
python3 -B "$source_dir/tests/deploy/check_links.py" "$documents" || fail "documents have dead links"
[ -x "$documents/deploy/android/wrap.sh" ] || fail "wrap.sh is no program"
# Every document of the tree is one of the package.
(cd "$source_dir" && git ls-files '*.md' 2> /dev/null) | while read -r document; do
  [ -f "$documents/$document" ] || echo "$document"
done > "$scratch/missing"
[ ! -s "$scratch/missing" ] || fail "documents that the package does not have: $(cat "$scratch/missing")"
rm -r "$scratch/collectord" "$scratch/libcollect-agent"

if command -v lintian > /dev/null; then
  lintian --allow-root --fail-on error,warning "$daemon" "$agent" || fail "lintian has findings"
else
  echo "skipped: lintian is missing"
fi

[ "$(id -u)" = 0 ] || skip "the rest: namespaces with a systemd of their own need root"
[ -x "$lower/lib/systemd/systemd" ] || skip "the rest: there is no systemd in $lower"
unshare --mount --pid --fork --uts --ipc --cgroup --net bash -c "
  mount --make-rprivate / && mount -t tmpfs tmpfs '$scratch/disk' && cd '$scratch/disk' &&
  mkdir upper work root && mount -t overlay overlay -o 'lowerdir=$lower,upperdir=upper,workdir=work' root &&
  mount -t cgroup2 cgroup2 root/mnt" 2> /dev/null || skip "the rest: no namespaces with mounts here"
COLLECT_INSIDE=stage timeout -s KILL 200 \
  unshare --kill-child=KILL --mount --pid --fork --uts --ipc --cgroup --net bash "$(realpath "$0")" "$@" \
  > "$scratch/log" 2>&1 < /dev/null
cat "$scratch/log"
grep -q '^installed, recorded' "$scratch/log" && exit 0
fail "see above"
