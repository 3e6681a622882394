#!/bin/bash
# Makes the Debian package with the agent for Android as packaging does, of this machine's agent in place
# of Android's, and unpacks it:  android_package.sh SOURCE PRESET AGENT FOLDER
# FOLDER/installed is what it installs. With 77 (skipped) where there is no dpkg.
set -eu
source=$1 preset=$2 agent=$3 folder=$4
command -v dpkg-deb >/dev/null || { echo "skipped: dpkg is missing"; exit 77; }
version=$(sed -n 's/^project(collectord VERSION \([0-9.]*\).*/\1/p' "$source/CMakeLists.txt")
made=$folder/made
mkdir -p "$made/lib/x86_64"
library=$made/lib/x86_64/libcollect_agent.so
strip --strip-unneeded -o "$library" "$agent"
python3 -B "$source/deploy/android/make_aar.py" --output "$made" --version "$version" --api 29 --ndk 27 \
  --header "$source/agent/include/collect/agent.h" "x86_64=$library"

cd "$source"
configure() { cmake --preset "$preset" -B "$folder/build" "$@"; }
if configure -DCOLLECT_ANDROID_AGENT="$folder" >"$folder/refused.log" 2>&1; then
  echo "a folder without an agent is packed"
  exit 1
fi
# CMake breaks the line where the folder's name ends.
tr -s ' \n' ' ' <"$folder/refused.log" | grep -q 'build it with deploy/agents.sh android --ndk DIR'
configure -DCOLLECT_ANDROID_AGENT="$made" >"$folder/configure.log" 2>&1 || { cat "$folder/configure.log"; exit 1; }
# Of the other packages nothing is built here.
(cd "$folder/build" && cpack -G DEB -D CPACK_COMPONENTS_ALL=android -D CPACK_PACKAGE_DIRECTORY="$folder") \
  >"$folder/cpack.log" 2>&1 || { cat "$folder/cpack.log"; exit 1; }
package=$folder/collectord-agent-android_$version-1_all.deb
[ -f "$package" ] || { echo "not made: $package"; ls "$folder"; exit 1; }
dpkg-deb -x "$package" "$folder/installed"
cmp "$library" "$folder/installed/usr/lib/collectord/android/x86_64/libcollect_agent.so"
cmp "$made"/maven/org/collectord/collect-agent/*/*.aar \
  "$folder"/installed/usr/share/collectord/android/maven/org/collectord/collect-agent/*/*.aar
if command -v lintian >/dev/null; then
  lintian --allow-root --fail-on error,warning "$package" || { echo "lintian has findings"; exit 1; }
fi
