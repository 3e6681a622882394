# The agent for apps on iOS, arm64, as a static library. On a Mac: Xcode's SDK. Elsewhere: a compile
# check with clang 19 for that target, against musl's headers and the few of Apple's in
# tests/agent/cross/declarations/apple.
if(CMAKE_HOST_APPLE)
  set(CMAKE_SYSTEM_NAME iOS)
  set(CMAKE_OSX_ARCHITECTURES arm64 CACHE STRING "")
  set(CMAKE_OSX_DEPLOYMENT_TARGET 15.0 CACHE STRING "")
  return()
endif()

set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR arm64)
set(COLLECT_AGENT_SYSTEM apple CACHE STRING "")
include(${CMAKE_CURRENT_LIST_DIR}/compile_check.cmake)
collect_compile_check(arm64-apple-ios15.0 apple -D_GNU_SOURCE)
