#!/bin/bash
# Builds AOSP's adbd for this machine from Debian's own source package, for the tests that want a
# real one:  build_adbd.sh DIRECTORY      DIRECTORY/adbd is there then
# With 77 (skipped) when something that it takes is not there. COLLECT_ADBD changes what is done:
#   COLLECT_ADBD=FILE    the tests take that one
#   COLLECT_ADBD=no      nothing is fetched or built, and the tests skip themselves
#
# Debian packages adb alone; the source of both is one. It is fetched (75 MB) by an apt of its own
# from the machine's archive and checked by apt. Nothing is installed, and nothing outside DIRECTORY
# is written. What ccache has kept is not compiled again.
set -euo pipefail
[ $# -eq 1 ] || { echo "usage: build_adbd.sh DIRECTORY" >&2; exit 2; }
case ${COLLECT_ADBD:-} in
  '') ;;
  no) echo "skipped: COLLECT_ADBD=no"; exit 77 ;;
  *) echo "nothing to build: COLLECT_ADBD is $COLLECT_ADBD"; exit ;;
esac
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
cd "$1"
this_script=$(sha256sum <"$here/${0##*/}")
if [ -x adbd ] && [ "$(cat built_by 2>/dev/null)" = "$this_script" ]; then exit; fi

skip() { echo "skipped: $*"; exit 77; }
for program in clang++-19 dpkg-deb patch; do
  command -v $program >/dev/null || skip "there is no $program (packages clang-19, dpkg-dev, patch)"
done
libraries=/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)/android
[ -e "$libraries/libcutils.so.0" ] || skip "there is no $libraries/libcutils.so.0 (package adb)"

rm -rf fetched source needed objects
source "$here/../../../deploy/own_apt.sh"
fetch() {
  own_apt_begin "$PWD/fetched" && own_apt source --download-only android-platform-tools &&
    own_apt download android-libboringssl-dev libcap-dev
}
(fetch) >fetch.log 2>&1 || skip "apt can't fetch the sources: $(grep -m 1 '^E:\|^error' fetch.log || tail -n 1 fetch.log)"
for package in fetched/*.deb; do dpkg-deb -x "$package" needed; done
# A fiftieth of the source. Of Debian's patches what is for these folders: a file that is not there is
# passed over, and a hunk that does not fit leaves a .rej.
core=system/core
rooms=(adb base diagnose_usb include libasyncio libcrypto_utils libcutils liblog)
mkdir source
cd source
tar -xf ../fetched/*.orig.tar.* --strip-components=1 --wildcards "${rooms[@]/#/*/$core/}"
tar -xf ../fetched/*.debian.tar.*
for name in $(grep '^system/core/\|^cve/' debian/patches/series); do
  patch -p1 --force --quiet <"debian/patches/$name" >../patch.log 2>&1 || [ $? = 1 ]
done
if rejected=$(find $core -name '*.rej' | grep .); then
  echo "patches of Debian do not fit: $rejected" >&2
  exit 1
fi

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

# The library that asks the user of a phone lives elsewhere in AOSP: here no one is asked.
# So does the kernel's trace, which a phone's adbd writes into.
mkdir -p ours/utils
cat > ours/utils/Trace.h <<'END'
#pragma once
#define ATRACE_TAG_ADB 0
#define ATRACE_NAME(name) (void)(name)
#define ATRACE_CALL()
END
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
       -I$core/libasyncio/include -isystem ../needed/usr/include/android -isystem ../needed/usr/include)
mkdir -p ../objects
compiler=clang++-19
# The folder has no part in it: all checkouts share what is kept.
if command -v ccache >/dev/null; then
  compiler="ccache $compiler"
  export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
fi
printf '%s\n' "${sources[@]}" | xargs -P "$(nproc)" -I{} bash -c \
  '$1 "${@:3}" -x c++ -c "$2" -o "../objects/${2//\//_}.o"' _ "$compiler" {} "${flags[@]}"
cd ..
clang++-19 -o adbd objects/*.o -Wl,-rpath="$libraries" "-L$libraries" -l:libbase.so.0 \
  -l:libcutils.so.0 -l:liblog.so.0 -l:libcrypto.so.0 needed/usr/lib/*/libcap.a -lpthread -lresolv
rm -rf fetched source needed objects ./*.log
echo "$this_script" >built_by
echo "built $PWD/adbd"
