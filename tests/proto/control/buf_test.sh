#!/bin/sh
# buf_test.sh PROTO_ROOT: the files keep buf's rules, and nothing that was published has changed. With
# 77 (skipped) when there is no buf.
set -eu
root=$1
buf=${COLLECT_BUF:-$(command -v buf || true)}
[ -n "$buf" ] || { echo "skipped: there is no buf; deploy/test.sh installs it"; exit 77; }
cd "$root"
"$buf" lint .
"$buf" breaking . --against v1.binpb
scratch=$(mktemp -d)
trap 'rm -r "$scratch"' EXIT
# Both find what they are for.
cp -r . "$scratch/changed"
sed -i 's/uint32 pid = 5;/uint64 pid = 5;/' "$scratch/changed/collect/control/v1/agents.proto"
if "$buf" breaking "$scratch/changed" --against v1.binpb > "$scratch/said"; then
  echo "a field of another type was not noticed"
  exit 1
fi
grep -q pid "$scratch/said"
printf 'message Bare { string x = 1; }\n' >> "$scratch/changed/collect/control/v1/agents.proto"
if "$buf" lint "$scratch/changed" > "$scratch/said"; then
  echo "a message without a comment was not noticed"
  exit 1
fi
grep -q Bare "$scratch/said"
