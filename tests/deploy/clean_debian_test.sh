#!/bin/bash
# debian_package_test.sh on a Debian 12 that was made for it: nothing is installed there but systemd
# and what the packages depend on. Takes minutes and Debian's archive, so it is not one of ctest's:
#   tests/deploy/clean_debian_test.sh [BUILD_DIR]
set -eu
source_dir=$(cd "$(dirname "$0")/../.." && pwd)
build_dir=$(realpath "${1:-$source_dir/build/release}")
command -v mmdebstrap > /dev/null || { echo "mmdebstrap is missing: apt-get install mmdebstrap"; exit 77; }
scratch=$(mktemp -d)
trap 'rm -rf --one-file-system "$scratch"' EXIT

(cd "$build_dir" && cpack -G DEB -D CPACK_PACKAGE_DIRECTORY="$scratch") > /dev/null
needed=$(for package in "$scratch"/*.deb; do dpkg-deb -f "$package" Depends; echo; done | tr ',' '\n' |
  sed 's/|.*//; s/(.*//; s/ //g' | grep -v -e '^libcollect-agent$' -e '^$' | sort -u | paste -sd,)
echo "a Debian 12 with systemd,$needed"
mmdebstrap --quiet --variant=minbase --include="systemd,$needed" bookworm "$scratch/root" \
  < "${COLLECT_APT_SOURCES:-/etc/apt/sources.list.d/debian.sources}"
bash "$source_dir/tests/deploy/debian_package_test.sh" "$source_dir" "$build_dir" \
  "$build_dir/bin/e2e/threads" "$scratch/root"
