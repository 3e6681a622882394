#!/bin/sh
# Runs a command in the folder of a build that another test made:  if_built.sh BUILD COMMAND…
# With 77 (skipped) when that one was skipped.
set -eu
[ -e "$1/lib/libcollect_agent.so" ] || { echo "skipped: $1 was not built"; exit 77; }
cd "$1"
shift
exec "$@"
