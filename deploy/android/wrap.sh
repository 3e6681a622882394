#!/system/bin/sh
# Starts a debuggable app with the agent preloaded; lies in lib/<abi>/ of its APK beside
# libcollect_agent.so. README.md says what else it takes.
folder=$(cd "$(dirname "$0")" && pwd)
if [ -z "$COLLECT_CONNECT" ]; then
  export COLLECT_LISTEN="${COLLECT_LISTEN:-abstract:}"
fi
export LD_PRELOAD="$folder/libcollect_agent.so${LD_PRELOAD:+:$LD_PRELOAD}"
exec "$@"
