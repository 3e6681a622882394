#!/usr/bin/env bash
# What cross builds of the agent need beside packages of this machine's architecture, into
# build/tools:  bash deploy/cross-tools.sh
#
# - nanopb/: the sources of nanopb's runtime, which is compiled for each target; of the version whose
#   generator Debian has.
# - musl-arm64/: the C library for static arm64 programs.
# - linux-arm64/: the kernel's headers of Debian's cross compiler, without glibc's beside them.
#
# The first two come from Debian's archive, by an apt of its own: the system's lists and architectures stay as
# they are. Elsewhere: set COLLECT_NANOPB_SOURCE to a checkout of nanopb 0.4.7.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=$PWD/build/tools
musl=usr/lib/aarch64-linux-musl/libc.a
mkdir -p "$tools/linux-arm64"
for folder in linux asm asm-generic; do
  ln -sfn "/usr/aarch64-linux-gnu/include/$folder" "$tools/linux-arm64/$folder"
done
[ -f "$tools/nanopb/pb_decode.c" ] && [ -f "$tools/musl-arm64/$musl" ] && exit 0

work=$tools/cross-apt
mkdir -p "$tools/nanopb" "$tools/musl-arm64"
source deploy/own_apt.sh
own_apt_begin "$work" arm64
own_apt source --download-only --tar-only nanopb
own_apt download musl-dev
tar -xzf "$work"/nanopb_*.orig.tar.gz -C "$tools/nanopb" --strip-components=1 --wildcards \
  '*/pb.h' '*/pb_*.[ch]' '*/LICENSE.txt'
dpkg-deb -x "$work"/musl-dev_*_arm64.deb "$tools/musl-arm64"
rm -rf "$work"
[ -f "$tools/nanopb/pb_decode.c" ] && [ -f "$tools/musl-arm64/$musl" ]
