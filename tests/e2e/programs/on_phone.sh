#!/bin/sh
# Runs a program where a phone's files are:  on_phone.sh PHONE [FOLDER=BYTES]… -- PROGRAM…
# In a root of its own, this machine's with /data/local/tmp in it, which is PHONE/tmp; the commands of
# PHONE/bin come first. FOLDER=BYTES: that folder below PHONE holds so much. It takes root.
set -eu
phone=$1
shift
if [ -z "${ON_PHONE_MOUNTS:-}" ]; then
  ON_PHONE_MOUNTS=own exec unshare --mount --propagation private "$0" "$phone" "$@"
fi
unset ON_PHONE_MOUNTS
while [ "$1" != -- ]; do
  mount -t tmpfs -o "size=${1#*=},mode=777" none "$phone/${1%%=*}"
  shift
done
shift
root=$phone/root
mkdir -p "$root"
mount -t tmpfs -o mode=755 none "$root"
for place in /*; do
  if [ -L "$place" ]; then
    cp -P "$place" "$root$place"
  elif [ -d "$place" ] && [ "$place" != /data ]; then
    mkdir "$root$place"
    mount --rbind "$place" "$root$place"
  fi
done
mkdir -p "$root/data/local/tmp"
mount --bind "$phone/tmp" "$root/data/local/tmp"
PHONE=$phone PATH=$phone/bin:$PATH exec chroot "$root" "$@"
