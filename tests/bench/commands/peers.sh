#!/usr/bin/env bash
# Real programs under collectctl, uftrace and LTTng-UST, in turn, in one run; prints one table.
#
#   tests/bench/commands/peers.sh [--rounds N] [--program NAME]…
#
# Programs: lua (Lua 5.4 from Debian's source package, one thread) and json (json_iso_codes, four
# threads), each built with gcc and with clang: lua-gcc, lua-clang, json-gcc, json-clang. Needs a
# release build, uftrace, lttng-tools, liblttng-ust1 and deb-src lists that apt can fetch; what is
# missing of the recorders is left out, and said. Nothing else should run on the machine: CPU seconds
# are the whole machine's, because recorders have processes that no one waits for. Programs and
# traces lie in build/peers; the traces are removed.
set -euo pipefail
cd "$(dirname "$0")/../../.."
source deploy/setup.sh
case ${1:-} in -h|--help) sed -n '2,/^set/{/^set/!s/^# \{0,1\}//p}' tests/bench/commands/peers.sh; exit 0 ;; esac
[ -x build/release/bin/collectctl ] || fail "there is no release build: cmake --preset release && cmake --build --preset release"
work=$root/build/peers
mkdir -p "$work"

if [ ! -d "$work/lua" ]; then
  say "Fetching the source of Lua 5.4 …"
  source deploy/own_apt.sh
  quietly peers-lists own_apt_begin "$work/apt"
  quietly peers-source own_apt source --download-only --tar-only lua5.4
  mkdir "$work/lua"
  tar -xf "$work"/apt/lua5.4_*.orig.tar.* -C "$work/lua" --strip-components=1
  rm -rf "$work/apt"
fi

# build_program NAME COMPILER…: NAME as it is (plain) and with its calls traced. What clang inlines
# of C++ is left out: it names functions of the library of which there is no copy.
build_program() {
  local name=$1 traced=-finstrument-functions
  [ "$name" != json-clang ] || traced=-finstrument-functions-after-inlining
  shift
  [ -x "$work/$name.traced" ] && return
  say "Building $name …"
  quietly "peers-$name" "$@" -o "$work/$name.plain"
  quietly "peers-$name" "$@" "$traced" -o "$work/$name.traced"
}
lua_sources=$(find "$work/lua/src" -name '*.c' ! -name luac.c ! -name ltests.c)
for pair in gcc:g++ clang-19:clang++-19; do
  c=${pair%:*} cpp=${pair#*:}
  command -v "$c" >/dev/null || continue
  # shellcheck disable=SC2086  # one word for each file
  build_program "lua-${c%%-*}" "$c" -O2 -g -DLUA_USE_LINUX -Wl,-E $lua_sources -lm -ldl
  build_program "json-${c%%-*}" "$cpp" -O2 -g -std=c++20 -pthread tests/e2e/programs/json_iso_codes.cc
done
exec /usr/bin/python3 tests/bench/commands/peers.py "$work" "$@"
