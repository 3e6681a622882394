#!/usr/bin/env bash
# What cross builds of the agent need beside packages of this machine's architecture, into
# build/tools:  bash deploy/cross-tools.sh
#
# - nanopb/: the sources of nanopb's runtime, which is compiled for each target; of the version whose
#   generator Debian has.
# - musl-arm64/: the C library for static arm64 programs; musl-x86_64/: its headers for a compile check.
# - linux-arm64/, linux-x86_64/: the kernel's headers, without glibc's beside them.
#
# nanopb and musl come from Debian's archive, by an apt of its own: the system's lists and architectures stay
# as they are. Elsewhere: set COLLECT_NANOPB_SOURCE to a checkout of nanopb 0.4.7.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=$PWD/build/tools
kernel_headers() {  # kernel_headers NAME FOLDER_OF_ASM FOLDER_OF_THE_REST
  mkdir -p "$tools/linux-$1"
  ln -sfn "$2/asm" "$tools/linux-$1/asm"
  ln -sfn "$3/linux" "$tools/linux-$1/linux"
  ln -sfn "$3/asm-generic" "$tools/linux-$1/asm-generic"
}
kernel_headers arm64 /usr/aarch64-linux-gnu/include /usr/aarch64-linux-gnu/include
kernel_headers x86_64 /usr/include/x86_64-linux-gnu /usr/include

complete() {
  [ -f "$tools/nanopb/pb_decode.c" ] &&
    [ -f "$tools/musl-arm64/usr/lib/aarch64-linux-musl/libc.a" ] &&
    [ -d "$tools/musl-x86_64/usr/include/x86_64-linux-musl" ]
}
complete && exit 0

work=$tools/cross-apt
mkdir -p "$tools/nanopb" "$tools/musl-arm64" "$tools/musl-x86_64"
source deploy/own_apt.sh
own_apt_begin "$work" amd64
own_apt download musl-dev
own_apt_begin "$work" arm64
own_apt source --download-only --tar-only nanopb
own_apt download musl-dev
tar -xzf "$work"/nanopb_*.orig.tar.gz -C "$tools/nanopb" --strip-components=1 --wildcards \
  '*/pb.h' '*/pb_*.[ch]' '*/LICENSE.txt'
dpkg-deb -x "$work"/musl-dev_*_arm64.deb "$tools/musl-arm64"
dpkg-deb -x "$work"/musl-dev_*_amd64.deb "$tools/musl-x86_64"
rm -rf "$work"
complete
