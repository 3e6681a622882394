#!/bin/sh
# Builds the agent alone for another system:  build.sh SOURCE BUILD PRESET
# `android-example` is no preset, but deploy/android/example, for arm64 Linux in place of Android.
# With 77 (skipped) when a program or a folder that it takes is not there.
set -eu
source=$1 build=$2 preset=$3
cross_gcc=/usr/aarch64-linux-gnu/include/linux
libcxx=/usr/lib/llvm-19/include/c++/v1/array
nanopb=build/tools/nanopb/pb_decode.c
musl=build/tools/musl-arm64/usr/lib/aarch64-linux-musl/libc.a
case $preset in
arm64 | android-example)
  programs="aarch64-linux-gnu-g++ qemu-aarch64-static" files="$nanopb" ;;
arm64-musl)
  programs="clang++-19 ld.lld-19 qemu-aarch64-static" files="$nanopb $musl $libcxx $cross_gcc" ;;
*)
  programs="clang++-19 ld.lld-19" files="$nanopb $musl $libcxx $cross_gcc" ;;
esac
for program in $programs; do
  command -v "$program" >/dev/null || { echo "skipped: there is no $program"; exit 77; }
done
cd "$source"
for file in $files; do
  [ -e "$file" ] || { echo "skipped: there is no $file; see deploy/cross-tools.sh"; exit 77; }
done
if [ "$preset" = android-example ]; then
  cmake -S "$source/deploy/android/example" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
    -DCMAKE_TOOLCHAIN_FILE="$source/cmake/toolchains/linux-arm64.cmake"
else
  cmake -S "$source" -B "$build" --preset "$preset"
fi
cmake --build "$build"
