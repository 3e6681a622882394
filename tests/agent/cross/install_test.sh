#!/bin/sh
# In the folder of a build of the agent alone:  install_test.sh CMAKE
# What it installs is a header, two libraries and XRay's object, and a program builds with them and nothing else.
set -eu
folder=$PWD/install_test
rm -rf "$folder"
"$1" --install . --prefix "$folder" >/dev/null
found=$(cd "$folder" && find . -type f | sort | tr '\n' ' ')
expected="./include/collect/agent.h ./lib/collect_xray.o ./lib/libcollect_agent.a "
expected="$expected./lib/libcollect_agent.so "
[ "$found" = "$expected" ] || { echo "installed: $found"; echo "expected:  $expected"; exit 1; }
cat >"$folder/program.c" <<'END'
#include <collect/agent.h>
int main(void) {
  return collect_agent_status() == 0;
}
END
for how in "$folder/lib/libcollect_agent.a -pthread" "-L$folder/lib -lcollect_agent"; do
  # shellcheck disable=SC2086  # words of a command line
  aarch64-linux-gnu-gcc -I"$folder/include" "$folder/program.c" -o "$folder/program" $how
  qemu-aarch64-static -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH="$folder/lib" "$folder/program"
  echo "runs: $how"
done
rm -rf "$folder"
