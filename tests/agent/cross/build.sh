#!/bin/bash
# Builds the agent alone for another system:  build.sh SOURCE BUILD PRESET
# `android-example` is no preset, but the native part of deploy/android/example, for arm64 Linux in place
# of Android, out of an AAR with the library of the preset arm64, which is built beside it.
# With 77 (skipped) when a program or a folder that it takes is not there.
set -eu
source=$1 build=$2 preset=$3 unity=()
cd "$source"
source deploy/cross_needs.sh
case $preset in
  arm64 | arm64-musl) kind=$preset programs=qemu-aarch64-static ;;
  android-example) kind=arm64 programs=qemu-aarch64-static ;;
  *) kind=compile-check programs= unity=(-DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=16) ;;
esac
missing=$(cross_missing "$kind")
[ -z "$missing" ] || { echo "skipped: $missing"; exit 77; }
for program in $programs; do
  command -v "$program" >/dev/null || { echo "skipped: there is no $program"; exit 77; }
done
if [ "$preset" = android-example ]; then
  rm -rf "$build/aar" "$build/prefab"
  aar=$(python3 -B deploy/android/make_aar.py --output "$build/aar" --version 0.1.0 --api 29 --ndk 27 \
    --header agent/include/collect/agent.h "arm64-v8a=$build/../arm64/lib/libcollect_agent.so")
  python3 -B tests/agent/cross/prefab_config.py "$aar" arm64-v8a 29 "$build/prefab"
  set -- -S "$source/deploy/android/example/app/src/main/cpp" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
    -DCMAKE_TOOLCHAIN_FILE="$source/cmake/toolchains/linux-arm64.cmake" -Dcollect_agent_DIR="$build/prefab"
else
  set -- -S "$source" --preset "$preset" "${unity[@]}"
fi
# A folder of an earlier version may name a toolchain file that is gone.
cmake -B "$build" "$@" || cmake --fresh -B "$build" "$@"
cmake --build "$build"
