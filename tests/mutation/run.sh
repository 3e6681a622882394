#!/usr/bin/env bash
# Plants mistakes into a copy of one room and counts those that the room's own tests notice.
#
#   bash tests/mutation/run.sh ROOM [--here] [--count N] [--seed S] [--tests REGEX] [--jobs N]
#                              [--keep]
#
# ROOM is a folder of the sources: storage, agent, daemon/ingest, formats … (--here: only the files
# of the folder itself, not those of the folders in it). Its tests are those of tests/ROOM; --tests
# takes others (a regular expression over CTest's names). N mistakes (30) are drawn by S (1). The
# copy is in build/mutation/ROOM and is removed at the end unless --keep is given. Prints each
# mistake that no test noticed, then the score; exit code 1 when it is below 90 of 100. MUTATION.md
# says more.
set -euo pipefail
cd "$(dirname "$0")/../.."
source deploy/setup.sh

usage() { sed -n '2,/^set/{/^set/!s/^# \{0,1\}//p}' tests/mutation/run.sh; }
room='' here='' count=30 seed=1 tests='' jobs=$(nproc) keep=no
while [ $# -gt 0 ]; do
  case $1 in
    --count) count=$2; shift 2 ;;
    --seed) seed=$2; shift 2 ;;
    --tests) tests=$2; shift 2 ;;
    --jobs) jobs=$2; shift 2 ;;
    --here) here=--here; shift ;;
    --keep) keep=yes; shift ;;
    -h|--help) usage; exit 0 ;;
    -*) fail "unknown option $1; --help lists them" ;;
    *) room=${1%/}; shift ;;
  esac
done
[ -n "$room" ] || { usage >&2; exit 2; }
[ -d "$room" ] || fail "there is no folder $room"
install_packages build test mutation

work=$root/build/mutation/${room//\//_}$here
rm -rf "$work"
mkdir -p "$work/tree"
git ls-files -z --cached --others --exclude-standard | tar --null -T - -cf - | tar -xf - -C "$work/tree"

# Tests look for the reference pack beside their checkout.
ln -s "$root/../shared" "$work/shared"
# The copy is a checkout of its own for the compiler cache, so that what has no mistake is not
# compiled again.
export CCACHE_BASEDIR=$work/tree
build=$work/tree/build/release
quietly mutation-configure cmake -S "$work/tree" -B "$build" --preset release
# Without the generated headers, what uses their messages could not be parsed: no mistake there.
ninja -C "$build" -t targets all | sed -n 's/^\([^:]*\.pb\.h\):.*/\1/p' |
  quietly mutation-headers xargs ninja -C "$build"
/usr/bin/python3 tests/mutation/plant.py "$work/tree" "$room" $here --count "$count" --seed "$seed" \
  --commands "$build/compile_commands.json" --out "$work/mutants.json"
status=0
/usr/bin/python3 tests/mutation/score.py "$work" "$room" --tests "$tests" --jobs "$jobs" || status=$?
[ $keep = yes ] || rm -rf "$work/tree"
exit $status
