# The agent for apps on Android, arm64, from Android 10 (API 29: thread-local variables of ELF).
#
# With ANDROID_NDK, in the environment or the cache: the NDK's own toolchain. Without: a compile check
# with clang 19 for that target, against the headers of musl and of the kernel, and the few of bionic's
# in tests/agent/cross/declarations/android. What is linked then has no C library and can't run.
if(NOT ANDROID_NDK)
  set(ANDROID_NDK $ENV{ANDROID_NDK})
endif()
if(ANDROID_NDK)
  set(ANDROID_ABI arm64-v8a CACHE STRING "")
  set(ANDROID_PLATFORM android-29 CACHE STRING "")
  include(${ANDROID_NDK}/build/cmake/android.toolchain.cmake)
  return()
endif()

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(COLLECT_AGENT_SYSTEM android CACHE STRING "")
include(${CMAKE_CURRENT_LIST_DIR}/compile_check.cmake)
collect_compile_check(aarch64-linux-android29 android "-isystem ${COLLECT_CHECK_TOOLS}/linux-arm64")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "-nostdlib -fuse-ld=lld-19 \
-Wl,--unresolved-symbols=ignore-all -L${COLLECT_CHECK_TOOLS}/musl-arm64/usr/lib/aarch64-linux-musl")
