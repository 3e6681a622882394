#!/system/bin/sh
# Starts a debuggable app with the agent preloaded; is in lib/<abi>/ of its APK beside
# libcollect_agent.so. README.md says what else it takes.
folder=$(cd "$(dirname "$0")" && pwd)
# What `collectctl android run` says, if it started the app.
for word in "$@"; do
  case $word in
    --nice-name=*) variables=/data/data/${word#--nice-name=}/collect/variables ;;
  esac
done
if [ -r "$variables" ]; then . "$variables"; fi
if [ -z "$COLLECT_CONNECT" ]; then
  export COLLECT_LISTEN="${COLLECT_LISTEN:-abstract:}"
fi
export LD_PRELOAD="$folder/libcollect_agent.so${LD_PRELOAD:+:$LD_PRELOAD}"
exec "$@"
