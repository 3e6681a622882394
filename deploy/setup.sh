# Shared by quickstart.sh and test.sh, which source it: packages, tools and progress. Works on a bare
# Debian 12; where everything is there already it does nothing and takes a second.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tools=$root/build/tools
buf_version=1.75.0
wtf_reader_version=2015.7.15-1
duckdb_version=1.5.6-r.1
chdb_version=3.4.0
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

# npm_package NAME VERSION FILE: into a folder of its own (npm removes what it does not know), if it
# is not there. `npm_modules` is where; false when that failed.
npm_package() {
  local name=$1 version=$2 file=$3
  npm_modules=$tools/${name##*/}/node_modules
  [ -e "$npm_modules/$file" ] && return
  if ! command -v npm >/dev/null; then
    # NodeSource's nodejs brings its own npm and excludes Debian's package.
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends npm \
      >"$logs/apt-npm.log" 2>&1 || true
  fi
  if command -v npm >/dev/null &&
    timeout 180 npm install --prefix "$tools/${name##*/}" --no-save --no-audit --no-fund --ignore-scripts \
      "$name@$version" >"$logs/npm-${name##*/}.log" 2>&1 && [ -e "$npm_modules/$file" ]; then
    say "Installed $name $version from npm into build/tools."
    return
  fi
  say "Skipped: $name is not available (see build/logs/npm-${name##*/}.log)."
  return 1
}

# A gRPC client for the command line: grpcurl if it is there, and buf from npm. Sets `buf` and
# `grpcurl`, empty where there is none.
find_grpc_clients() {
  grpcurl=$(command -v grpcurl || true)
  buf=$(command -v buf || true)
  [ -n "$buf" ] && return
  npm_package @bufbuild/buf "$buf_version" .bin/buf && buf=$npm_modules/.bin/buf || buf=
}

# The reference reader of WTF-trace, which our files are held against. Sets `node_path`, empty
# without it.
find_wtf_reader() {
  npm_package tracing-framework "$wtf_reader_version" tracing-framework/package.json &&
    node_path=$npm_modules || node_path=
}

# DuckDB, which reads our Parquet files in tests. Sets `duckdb_path`, empty without it.
find_duckdb() {
  npm_package @duckdb/node-api "$duckdb_version" @duckdb/node-api/package.json &&
    duckdb_path=$npm_modules || duckdb_path=
}

# ClickHouse's newest engine as a library, which reads our files in place in tests. Sets `chdb_path`,
# empty without it.
find_chdb() {
  npm_package chdb "$chdb_version" chdb/package.json && chdb_path=$npm_modules || chdb_path=
}

# build_preset PRESET [TARGET…]
build_preset() {
  local preset=$1
  shift
  # Less time for all; a folder that is there keeps what its owner chose.
  local unity=-DCOLLECT_UNITY=ON
  if [ -f "$root/build/$preset/CMakeCache.txt" ]; then unity=; fi
  quietly "configure-$preset" cmake -S "$root" --preset "$preset" $unity
  python3 "$root/deploy/progress.py" "$logs/build-$preset.log" \
    env NINJA_STATUS='[%f/%t] ' cmake --build "$root/build/$preset" ${1:+--target "$@"} ||
    fail "the build of $preset failed"
}
