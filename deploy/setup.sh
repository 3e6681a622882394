# Shared by quickstart.sh and test.sh, which source it: packages, tools and progress. Works on a bare
# Debian 12; where everything is there already it does nothing and takes a second.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tools=$root/build/tools
buf_version=1.75.0
logs=$root/build/logs
mkdir -p "$logs" "$tools"

# One compiler cache for all checkouts: what is the same but for the folder is not compiled again.
export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1

say() { printf '%s\n' "$*"; }

fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# quietly NAME COMMAND…: runs it with its output in a log, and shows the end of that if it fails.
quietly() {
  local name=$1 log=$logs/$1.log
  shift
  if ! "$@" >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    fail "$name failed; the whole output is in $log"
  fi
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    return 127
  fi
}

# packages_for KIND…: the names in packages.txt, one a line.
packages_for() {
  local kind
  for kind in "$@"; do
    sed -n "s/^$kind \([^ ]*\)\$/\1/p" "$root/deploy/packages.txt"
  done
}

# install_packages KIND…: what is missing of these kinds.
install_packages() {
  local wanted missing
  command -v dpkg-query >/dev/null ||
    fail "this is no Debian system. Install what deploy/packages.txt names, then run" \
         "cmake --preset release && cmake --build --preset release"
  wanted=$(packages_for "$@")
  missing=$(comm -23 <(sort -u <<<"$wanted") <(
    dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' 2>/dev/null |
      sed -n 's/^ii  *//p' | sort -u))
  if [ -z "$missing" ]; then
    say "All $(wc -w <<<"$wanted") packages are installed."
    return
  fi
  if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
    fail "packages are missing and neither root nor sudo is available. As root, run:" \
         "apt-get install $(tr '\n' ' ' <<<"$missing")"
  fi
  say "Installing $(wc -w <<<"$missing") Debian packages (the output goes to build/logs/) …"
  quietly apt-update as_root apt-get update
  # shellcheck disable=SC2086  # one word for each package
  quietly apt-install as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends $missing
}

# A gRPC client for the command line: grpcurl if it is there, and buf from npm. Sets `buf` and
# `grpcurl` to programs, or to nothing. The C++ tests and collectctl need neither.
find_grpc_clients() {
  grpcurl=$(command -v grpcurl || true)
  buf=$(command -v buf || true)
  [ -n "$buf" ] && return
  buf=$tools/node_modules/.bin/buf
  [ -x "$buf" ] && return
  if ! command -v npm >/dev/null; then
    # NodeSource's nodejs brings its own npm and excludes Debian's package.
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends npm \
      >"$logs/apt-npm.log" 2>&1 || true
  fi
  if command -v npm >/dev/null &&
    timeout 180 npm install --prefix "$tools" --no-save --no-audit --no-fund --ignore-scripts \
      "@bufbuild/buf@$buf_version" >"$logs/npm-buf.log" 2>&1 && [ -x "$buf" ]; then
    say "Installed buf $buf_version from npm into build/tools."
  else
    buf=
    say "Skipped: buf is not available (npm i @bufbuild/buf failed, see build/logs/npm-buf.log)."
  fi
}

# build_preset PRESET [TARGET…]
build_preset() {
  local preset=$1
  shift
  quietly "configure-$preset" cmake -S "$root" --preset "$preset"
  quietly "build-$preset" cmake --build "$root/build/$preset" ${1:+--target "$@"}
}
