# For the toolchain files of Apple's systems: the agent for arm64 as a static library. On a Mac: Xcode's
# SDK. Elsewhere: a compile check with clang 19 for that target, against musl's headers and the few of
# Apple's in tests/agent/cross/declarations/apple.

# collect_apple(<CMake's name of the system> <clang's name of it> <its oldest version> [simulator])
macro(collect_apple system clang_name oldest)
  if(CMAKE_HOST_APPLE)
    set(CMAKE_SYSTEM_NAME ${system})
    set(CMAKE_OSX_ARCHITECTURES arm64 CACHE STRING "")
    set(CMAKE_OSX_DEPLOYMENT_TARGET ${oldest} CACHE STRING "")
    if("${ARGN}" STREQUAL simulator)
      set(CMAKE_OSX_SYSROOT iphonesimulator CACHE STRING "")
    endif()
  else()
    set(CMAKE_SYSTEM_NAME Generic)
    set(CMAKE_SYSTEM_PROCESSOR arm64)
    set(COLLECT_AGENT_SYSTEM apple CACHE STRING "")
    include(${CMAKE_CURRENT_LIST_DIR}/compile_check.cmake)
    string(REPLACE simulator -simulator environment "${ARGN}")
    collect_compile_check(arm64-apple-${clang_name}${oldest}${environment} apple arm64 -D_GNU_SOURCE)
  endif()
endmacro()
