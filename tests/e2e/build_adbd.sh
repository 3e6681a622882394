#!/bin/bash
# Builds AOSP's adbd for this machine from Debian's own source package, for the tests that want a
# real one: bash tests/e2e/build_adbd.sh DIRECTORY, then COLLECT_ADBD=DIRECTORY/adbd.
#
# Debian packages adb alone; the source of both is one. It is fetched with the machine's own apt
# settings (75 MB), checked by apt, and built with: clang-19 dpkg-dev adb android-libboringssl-dev
# libcap-dev. Nothing is installed, and nothing outside DIRECTORY is written.
set -euo pipefail

[ $# -eq 1 ] || { echo "usage: build_adbd.sh DIRECTORY" >&2; exit 2; }
mkdir -p "$1"
cd "$1"
if [ -x adbd ]; then echo "$PWD/adbd is there"; exit; fi

libraries=/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)/android
for needed in /usr/include/android/openssl/rsa.h /usr/include/sys/capability.h "$libraries/libcutils.so.0"; do
  [ -e "$needed" ] || {
    echo "no $needed: apt-get install adb android-libboringssl-dev libcap-dev" >&2
    exit 1
  }
done

# The same archive as the machine's, source packages added.
mkdir -p apt/parts apt/lists/partial apt/cache/archives/partial
for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
  [ -f "$list" ] && sed -n 's/^deb /deb-src /p' "$list" >> apt/parts/source.list
done
for list in /etc/apt/sources.list.d/*.sources; do
  [ -f "$list" ] && sed 's/^Types:.*/Types: deb-src/' "$list" > "apt/parts/$(basename "$list")"
done
settings=(-o "Dir::Etc::SourceList=/dev/null" -o "Dir::Etc::SourceParts=$PWD/apt/parts"
          -o "Dir::State::Lists=$PWD/apt/lists" -o "Dir::Cache=$PWD/apt/cache"
          -o "APT::Sandbox::User=root")
apt-get "${settings[@]}" -qq update
rm -rf source
apt-get "${settings[@]}" -qq source --download-only android-platform-tools
dpkg-source -x ./*.dsc source > /dev/null
cd source

# On loopback only, and not on a virtual machine's socket.
sed -i 's/"tcp:%d"/"tcp:localhost:%d"/
        s/LOG(INFO) << "adbd listening on " << addr;/if (addr.find("vsock:") == 0) continue;/' \
  system/core/adb/daemon/main.cpp

# It looks at errno after a success too, and takes what is left in it for a failure.
sed -i 's/if (errno == EAFNOSUPPORT ||/if (serverfd < 0 \&\& (errno == EAFNOSUPPORT ||/
        s/errno == EPROTONOSUPPORT) {/errno == EPROTONOSUPPORT)) {/' \
  system/core/adb/transport_local.cpp
# Which an Android build has from elsewhere.
sed -i 's/#include "file_sync_protocol.h"/#include <private\/fs_config.h>\n&/' \
  system/core/adb/daemon/file_sync_service.cpp

# The library that asks the user of a phone lives elsewhere in AOSP: here nobody is asked.
mkdir -p ours
cat > ours/adbd_auth.h <<'END'
#pragma once
#include <stddef.h>
#include <stdint.h>
struct AdbdAuthContext;
struct AdbdAuthCallbacksV1 { void (*key_authorized)(void*, uint64_t); };
struct AdbdAuthCallbacks { uint32_t version; union { AdbdAuthCallbacksV1 v1; } callbacks; };
AdbdAuthContext* adbd_auth_new(AdbdAuthCallbacks*);
void adbd_auth_run(AdbdAuthContext*);
void adbd_auth_get_public_keys(AdbdAuthContext*, bool (*)(const char*, size_t, void*), void*);
void adbd_auth_notify_auth(AdbdAuthContext*, const char*, size_t);
void adbd_auth_notify_disconnect(AdbdAuthContext*, uint64_t);
void adbd_auth_prompt_user(AdbdAuthContext*, const char*, size_t, void*);
END
cat > ours/adbd_auth.cpp <<'END'
#include "adbd_auth.h"
#include <unistd.h>
AdbdAuthContext* adbd_auth_new(AdbdAuthCallbacks*) { return nullptr; }
void adbd_auth_run(AdbdAuthContext*) { for (;;) pause(); }
void adbd_auth_get_public_keys(AdbdAuthContext*, bool (*)(const char*, size_t, void*), void*) {}
void adbd_auth_notify_auth(AdbdAuthContext*, const char*, size_t) {}
void adbd_auth_notify_disconnect(AdbdAuthContext*, uint64_t) {}
void adbd_auth_prompt_user(AdbdAuthContext*, const char*, size_t, void*) {}
END

core=system/core
adb="adb adb_io adb_listeners adb_trace adb_unique_fd adb_utils fdevent/fdevent fdevent/fdevent_epoll
  fdevent/fdevent_poll services sockets socket_spec sysdeps/errno sysdeps/posix/network sysdeps_unix
  transport transport_fd transport_local transport_usb types shell_service_protocol
  adbconnection/adbconnection_server daemon/auth daemon/file_sync_service daemon/jdwp_service
  daemon/main daemon/services daemon/shell_service daemon/usb_dummy"
sources=(ours/adbd_auth.cpp $core/libasyncio/AsyncIO.cpp $core/diagnose_usb/diagnose_usb.cpp
         $core/libcrypto_utils/android_pubkey.c)
for name in $adb; do sources+=("$core/adb/$name.cpp"); done
# libcutils first: system/core/include has older headers of the same names.
flags=(-O1 -w -std=gnu++2a -fno-exceptions -D_GNU_SOURCE -DADB_HOST=0 -DALLOW_ADBD_NO_AUTH=1
       -DALLOW_ADBD_ROOT=0 '-DADB_VERSION="test"' '-DPLATFORM_TOOLS_VERSION="29.0.6"'
       -Iours -I$core/libcutils/include -I$core/include -I$core/adb
       -I$core/adb/daemon/include -I$core/adb/adbconnection/include -I$core/base/include
       -I$core/diagnose_usb/include -I$core/libcrypto_utils/include -I$core/liblog/include
       -I$core/libasyncio/include -isystem /usr/include/android)
mkdir -p objects
printf '%s\n' "${sources[@]}" |
  xargs -P "$(nproc)" -I{} bash -c 'clang++-19 "${@:2}" -x c++ -c "$1" -o "objects/${1//\//_}.o"' _ {} "${flags[@]}"
clang++-19 -o ../adbd objects/*.o -Wl,-rpath="$libraries" "-L$libraries" -l:libbase.so.0 \
  -l:libcutils.so.0 -l:liblog.so.0 -l:libcrypto.so.0 -lcap -lpthread -lresolv
cd ..
rm -rf source apt ./*.dsc ./*.tar.*
echo "built $PWD/adbd"
