# A compile check for Android, without its NDK: clang 19 against musl's headers, the kernel's, and those
# of bionic's in tests/agent/cross/declarations/android. What is linked has no C library and can't run.
include(${CMAKE_CURRENT_LIST_DIR}/compile_check.cmake)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES ANDROID_ABI)
set(android_processor x86_64)
set(android_headers x86_64)
if(ANDROID_ABI STREQUAL arm64-v8a)
  set(android_processor aarch64)
  set(android_headers arm64)
endif()
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${android_processor})
set(COLLECT_AGENT_SYSTEM android CACHE STRING "")
collect_compile_check(${android_processor}-linux-android29 android ${android_headers}
  "-isystem ${COLLECT_CHECK_TOOLS}/linux-${android_headers}")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "-nostdlib -fuse-ld=lld-19 -Wl,--unresolved-symbols=ignore-all \
-L${COLLECT_CHECK_TOOLS}/musl-${android_headers}/usr/lib/${android_processor}-linux-musl")
