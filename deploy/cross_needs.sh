# Sourced: what cross builds of the agent take of this machine.

# cross_missing KIND [NANOPB]: a line for each program and file that is not here, and how to get it. KIND
# is a preset that Debian's tools build, "compile-check" for the others, or "all" for what each build
# takes. NANOPB: a folder that has nanopb's sources.
cross_missing() {
  local kind=$1 nanopb=${2:-build/tools/nanopb} programs files='' entry
  programs="cmake:cmake:cmake ninja:ninja-build:ninja protoc:protobuf-compiler:protobuf python3:python3:python3"
  case $kind in
    arm64) programs="$programs aarch64-linux-gnu-g++:g++-aarch64-linux-gnu" ;;
    arm64-musl) files="musl-arm64/usr/lib/aarch64-linux-musl/libc.a" ;;
    compile-check) files="musl-arm64/usr/include musl-x86_64/usr/include" ;;
  esac
  if [ -n "$files" ]; then
    programs="$programs clang++-19:clang-19 ld.lld-19:lld-19"
    [ -e /usr/lib/llvm-19/include/c++/v1/array ] ||
      echo "there are no headers of libc++ 19: apt-get install libc++-19-dev"
    [ -e /usr/aarch64-linux-gnu/include/linux ] ||
      echo "there are no headers of the kernel for arm64: apt-get install g++-aarch64-linux-gnu"
  fi
  for entry in $programs; do
    command -v "${entry%%:*}" >/dev/null || cross_way_out "$entry"
  done
  command -v protoc-gen-nanopb >/dev/null ||
    echo "there is no protoc-gen-nanopb: apt-get install nanopb, or pip3 install nanopb==0.4.7"
  for entry in $files; do
    [ -e "build/tools/$entry" ] || echo "there is no build/tools/$entry: bash deploy/cross-tools.sh"
  done
  [ -e "$nanopb/pb_decode.c" ] || echo "there is no $nanopb/pb_decode.c: bash deploy/cross-tools.sh fetches" \
    "it on Debian; elsewhere name a checkout of nanopb 0.4.7"
}

# cross_way_out PROGRAM:DEBIAN_PACKAGE[:HOMEBREW_FORMULA]
cross_way_out() {
  local program=${1%%:*} rest=${1#*:}
  if [ "$(uname -s)" = Darwin ] && [ "$rest" != "${rest#*:}" ]; then
    echo "there is no $program: brew install ${rest#*:}"
  else
    echo "there is no $program: apt-get install ${rest%%:*}"
  fi
}
