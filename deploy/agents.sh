#!/usr/bin/env bash
# Builds and packs the agent for other systems:  deploy/agents.sh TARGET... [--ndk DIR] [--output DIR]
#
#   linux-arm64-glibc    collect-agent-VERSION-linux-arm64-glibc.tar.gz, by Debian's cross compiler
#   linux-arm64-musl     collect-agent-VERSION-linux-arm64-musl.tar.gz, for static programs
#   android              android/: the AAR in a Maven repository, and the libraries that collectctl
#                        looks for; arm64-v8a and x86_64 (there is no agent for 32-bit processors)
#   android-arm64-v8a, android-x86_64
#                        the same with one of them
#   ios                  apple/: CollectAgent.xcframework in a Swift package; phones and simulator, arm64
#   macos                the same for programs on macOS, arm64; with ios, in one XCFramework
#
#   --ndk DIR            Android's NDK, r27 or later; default: $ANDROID_NDK. Only an NDK makes libraries
#                        that run on Android
#   --nanopb DIR         nanopb's sources, 0.4.7; default: build/tools/nanopb, of deploy/cross-tools.sh
#   --output DIR         default: build/agents
#   --build DIR          where it is built; default: build/agents-build
#
# Equal sources, compilers and SOURCE_DATE_EPOCH give equal bytes. Ends with 0, 1 when a build or a
# check fails, 2 when it is called wrongly, 3 when this machine lacks something, which is named.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
readonly android_api=29 oldest_ndk=27

say() { printf '%s\n' "$*"; }
fail() { printf 'error: %s\n' "$2" >&2; exit "$1"; }
usage() { sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; }
absolute() { case $1 in /*) say "$1" ;; *) say "$PWD/$1" ;; esac; }

ndk=${ANDROID_NDK:-} output=$root/build/agents build=$root/build/agents-build nanopb=$root/build/tools/nanopb
linux='' abis='' apple=''
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) usage; exit 0 ;;
    --ndk | --nanopb | --output | --build)
      [ $# -gt 1 ] || fail 2 "$1 needs a folder"
      folder=$(absolute "$2")
      case $1 in
        --ndk) ndk=$folder ;;
        --nanopb) nanopb=$folder ;;
        --output) output=$folder ;;
        --build) build=$folder ;;
      esac
      shift ;;
    linux-arm64-glibc) linux="$linux arm64" ;;
    linux-arm64-musl) linux="$linux arm64-musl" ;;
    android) abis="arm64-v8a x86_64" ;;
    android-arm64-v8a | android-x86_64) abis="$abis ${1#android-}" ;;
    android-*) fail 2 "there is no agent for Android's ${1#android-}: only for arm64-v8a and x86_64" ;;
    ios) apple="$apple apple-ios apple-ios-simulator" ;;
    macos) apple="$apple apple-macos" ;;
    *) fail 2 "$1 is no target and no option; --help names them" ;;
  esac
  shift
done
[ -n "$linux$abis$apple" ] || fail 2 "no target is named; --help lists them"
cd "$root"
source deploy/cross_needs.sh
version=$(sed -n 's/^project(collectord VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
export ZERO_AR_DATE=1    # Apple's ar and libtool note the time otherwise
export CCACHE_DISABLE=1  # it writes names of folders in other ways than the compiler, into debug information
unset ANDROID_NDK        # only Android's builds see it

# What is missing, a line each.
missing() {
  local preset
  for preset in ${linux:-all}; do cross_missing "$preset" "$nanopb"; done
  if [ -n "$abis" ]; then ndk_missing; fi
  if [ -n "$apple" ]; then
    if [ "$(uname -s)" != Darwin ]; then
      say "agents for Apple's systems are built on a Mac with Xcode; this is $(uname -s)"
    elif ! command -v xcodebuild >/dev/null; then
      say "there is no xcodebuild: install Xcode, and run xcode-select --switch /Applications/Xcode.app"
    fi
  fi
}

ndk_missing() {
  if [ -z "$ndk" ]; then
    say "Android's NDK is not named: unpack it (https://developer.android.com/ndk/downloads), and give --ndk DIR"
  elif [ ! -e "$ndk/build/cmake/android.toolchain.cmake" ] || [ ! -e "$ndk/source.properties" ]; then
    say "$ndk is no NDK: it has no build/cmake/android.toolchain.cmake and source.properties"
  elif [ "$(ndk_major)" -lt $oldest_ndk ]; then
    say "the NDK in $ndk is r$(ndk_major): r$oldest_ndk or later is needed"
  fi
}
ndk_major() { sed -n 's/^Pkg\.Revision *= *\([0-9]*\).*/\1/p' "$ndk/source.properties"; }

# built PRESET [SETTING…]: builds the agent and installs it in $build/PRESET/product.
built() {
  local preset=$1 log="$build/$1-agent.log"
  shift
  set -- -B "$build/$preset" --preset "$preset" "-DCOLLECT_NANOPB_SOURCE=$nanopb" "$@"
  say "building $preset (the output goes to $log) …"
  mkdir -p "$build"
  # Their folder may be of an earlier version, or of another NDK.
  { { cmake "$@" || cmake --fresh "$@"; } &&
    cmake --build "$build/$preset" --target agent/all &&
    rm -rf "$build/$preset/product" &&
    cmake --install "$build/$preset" --component agent --prefix "$build/$preset/product"
  } >"$log" 2>&1 </dev/null || { tail -n 30 "$log" >&2; fail 1 "$preset could not be built; see $log"; }
}
check() { python3 -B tests/agent/check_library.py "$@" || fail 1 "$1 is not fit to be handed out"; }

pack_linux() {
  local preset=$1 name=linux-$1
  if [ "$preset" = arm64 ]; then name=linux-arm64-glibc; fi
  built "$preset"
  local product=$build/$preset/product
  if [ "$preset" = arm64 ]; then
    check "$product/lib/libcollect_agent.so" --tools aarch64-linux-gnu-
    aarch64-linux-gnu-strip --strip-unneeded "$product/lib/libcollect_agent.so"
  fi
  cp agent/AGENT.md "$product/"
  local archive=$output/collect-agent-$version-$name.tar.gz
  python3 -B -c 'import sys; sys.path.insert(0, "deploy"); import fixed_archive
sys.stdout.buffer.write(fixed_archive.tar_folder(sys.argv[1], sys.argv[2]))' \
    "$product" "collect-agent-$version-$name" >"$archive"
  say "$archive"
}

pack_android() {
  local abi preset tools libraries=()
  tools=$(echo "$ndk"/toolchains/llvm/prebuilt/*/bin)/llvm-
  rm -rf "$output/android"
  for abi in $abis; do
    preset=android
    if [ "$abi" = x86_64 ]; then preset=android-x86_64; fi
    built "$preset" "-DANDROID_NDK=$ndk"
    check "$build/$preset/product/lib/libcollect_agent.so" --tools "$tools" --android $android_api
    mkdir -p "$output/android/lib/$abi"
    "${tools}strip" --strip-unneeded -o "$output/android/lib/$abi/libcollect_agent.so" \
      "$build/$preset/product/lib/libcollect_agent.so"
    libraries+=("$abi=$output/android/lib/$abi/libcollect_agent.so")
  done
  python3 -B deploy/android/make_aar.py --output "$output/android" --version "$version" \
    --api $android_api --ndk "$(ndk_major)" --header agent/include/collect/agent.h "${libraries[@]}"
}

pack_apple() {
  local preset libraries=()
  for preset in $apple; do
    built "$preset"
    libraries+=("$build/$preset/product/lib/libcollect_agent.a")
  done
  python3 -B deploy/ios/make_xcframework.py --output "$output/apple" \
    --header agent/include/collect/agent.h "${libraries[@]}"
}

lacking=$(missing | sort -u)
[ -z "$lacking" ] || { printf '%s\n' "$lacking" >&2; fail 3 "nothing was built"; }
mkdir -p "$output"
for preset in $linux; do pack_linux "$preset"; done
if [ -n "$abis" ]; then pack_android; fi
if [ -n "$apple" ]; then pack_apple; fi
