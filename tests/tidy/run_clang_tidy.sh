#!/usr/bin/env bash
# Holds sources against .clang-tidy.
#
#   bash tests/tidy/run_clang_tidy.sh [--jobs N] [PATH…]
#
# PATH is a folder or a file of agent, formats, proto or storage (default: all four, which takes some
# seconds for each of their files). Exit code 1: there are findings. It works in build/tidy, a
# configured folder for clang 19 in which only generated headers are built.
set -euo pipefail
cd "$(dirname "$0")/../.."
source deploy/setup.sh

jobs=$(nproc) paths=()
while [ $# -gt 0 ]; do
  case $1 in
    --jobs) jobs=$2; shift 2 ;;
    -h|--help) sed -n '2,/^set/{/^set/!s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    -*) fail "unknown option $1; --help lists them" ;;
    *) [ -e "$1" ] || fail "there is no $1"; paths+=("${1%/}"); shift ;;
  esac
done
[ ${#paths[@]} != 0 ] || paths=(agent formats proto storage)
install_packages build tidy

quietly tidy-configure cmake -S . -B build/tidy -G Ninja -DCMAKE_C_COMPILER=clang-19 -DCMAKE_CXX_COMPILER=clang++-19 \
  -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DCOLLECT_UNITY=OFF
ninja -C build/tidy -t targets all | sed -nE 's/^([a-z][^:]*\.(pb|nanopb)\.h):.*/\1/p' |
  quietly tidy-headers xargs ninja -C build/tidy
files=("${paths[@]/#/^$root/}")
run-clang-tidy-19 -quiet -j "$jobs" -p build/tidy "${files[@]/%/(/|\$)}"
