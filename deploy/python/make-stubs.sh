#!/bin/sh
# make-stubs.sh DIRECTORY: Python stubs of the control plane. Takes protoc and gRPC's plugin, in
# Debian: protobuf-compiler, protobuf-compiler-grpc; to use them: python3-grpcio, python3-protobuf.
set -eu
[ $# = 1 ] || { echo "usage: make-stubs.sh DIRECTORY" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../../proto/control                  # of the source tree
[ -d "$root" ] || root=/usr/share/collect/proto # as the package has it
plugin=$(command -v grpc_python_plugin) || {
  echo "make-stubs.sh: there is no grpc_python_plugin: apt-get install protobuf-compiler-grpc" >&2
  exit 1
}
mkdir -p "$1"
cd "$root"
find collect google -name '*.proto' -exec \
  protoc -I . --plugin=protoc-gen-grpc="$plugin" --python_out="$1" --grpc_out="$1" {} +
