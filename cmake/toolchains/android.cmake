# The agent for apps on Android, from Android 10 (API 29: thread-local variables of ELF). ANDROID_ABI
# is arm64-v8a or x86_64: the agent knows no 32-bit processors.
#
# With ANDROID_NDK, in the environment or the cache: the NDK's own toolchain. Without: a compile check.
set(ANDROID_ABI arm64-v8a CACHE STRING "arm64-v8a or x86_64")
if(NOT ANDROID_ABI MATCHES "^(arm64-v8a|x86_64)$")
  message(FATAL_ERROR "ANDROID_ABI is ${ANDROID_ABI}: there is an agent for arm64-v8a and x86_64")
endif()
if(NOT ANDROID_NDK)
  set(ANDROID_NDK $ENV{ANDROID_NDK})
endif()
if(ANDROID_NDK)
  set(ANDROID_PLATFORM android-29 CACHE STRING "")
  include(${ANDROID_NDK}/build/cmake/android.toolchain.cmake)
else()
  include(${CMAKE_CURRENT_LIST_DIR}/android_check.cmake)
endif()
