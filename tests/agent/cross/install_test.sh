#!/bin/sh
# In the folder of a build of the agent alone:  install_test.sh CMAKE
# What it installs is a header, two libraries, XRay's object and what leads CMake and pkg-config to them, and a
# program builds with them and nothing else.
set -eu
folder=$PWD/install_test
rm -rf "$folder"
"$1" --install . --prefix "$folder" >/dev/null
found=$(cd "$folder" && find . -type f | LC_ALL=C sort | tr '\n' ' ')
expected="./include/collect/agent.h "
for leaf in Config ConfigVersion Targets-relwithdebinfo Targets; do
  expected="$expected./lib/cmake/collect_agent/collect_agent$leaf.cmake "
done
expected="$expected./lib/collect_xray.o ./lib/libcollect_agent.a ./lib/libcollect_agent.so "
expected="$expected./lib/pkgconfig/collect-agent.pc "
[ "$found" = "$expected" ] || { echo "installed: $found"; echo "expected:  $expected"; exit 1; }
cat >"$folder/program.c" <<'END'
#include <collect/agent.h>
int main(void) {
  return collect_agent_status() == 0;
}
END
for how in "$folder/lib/libcollect_agent.a -pthread" "-L$folder/lib -lcollect_agent" \
  "$(PKG_CONFIG_PATH=$folder/lib/pkgconfig pkg-config --libs collect-agent)"; do
  # shellcheck disable=SC2086  # words of a command line
  aarch64-linux-gnu-gcc -I"$folder/include" "$folder/program.c" -o "$folder/program" $how
  qemu-aarch64-static -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH="$folder/lib" "$folder/program"
  echo "runs: $how"
done
rm -rf "$folder"
