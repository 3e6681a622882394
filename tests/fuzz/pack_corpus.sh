#!/bin/sh
# The kept inputs of a fuzz target, as one archive:  pack_corpus.sh TARGET FOLDER
# The same files make the same bytes. `tar -xzf corpus/TARGET.tar.gz -C FOLDER` takes them out again.
set -eu
[ $# = 2 ] || { sed -n '2s/^# //p' "$0" >&2; exit 2; }
tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=0644 --format=ustar -C "$2" \
  -cf - $(cd "$2" && ls) | gzip -9n >"$(dirname "$0")/corpus/$1.tar.gz"
