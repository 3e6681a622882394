#!/bin/sh
# compile_by.sh LAUNCHER COMPILER CMAKES_COMPILER ARGUMENT…: another compiler does the work, under a launcher of
# its own. Headers that were precompiled before would be read while new ones are made.
set -eu
launcher=$1 compiler=$2 before=
shift 3
for argument; do
  case "$before $argument" in "-o "*.gch) rm -f "$argument" ;; esac
  before=$argument
done
exec "$launcher" "$compiler" "$@"
