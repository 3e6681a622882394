# For toolchain files of systems whose headers are not here: clang 19 compiles for the target against
# musl's headers, behind a folder of tests/agent/cross/declarations with what that system has and musl
# has not. Such a build shows that the sources are C++ for that target, and no more.
get_filename_component(COLLECT_CHECK_TOOLS ${CMAKE_CURRENT_LIST_DIR}/../../build/tools ABSOLUTE)

# collect_compile_check(<clang target> <folder of declarations> <arm64 or x86_64> <more flags>)
macro(collect_compile_check target declarations processor)
  set(CMAKE_C_COMPILER clang-19)
  set(CMAKE_CXX_COMPILER clang++-19)
  set(CMAKE_C_COMPILER_TARGET ${target})
  set(CMAKE_CXX_COMPILER_TARGET ${target})
  set(CMAKE_ASM_COMPILER_TARGET ${target})
  set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
  set(COLLECT_COMPILE_ONLY ON CACHE BOOL "Nothing of this build can be linked or run")
  get_filename_component(check_declarations
    ${CMAKE_CURRENT_LIST_DIR}/../../tests/agent/cross/declarations/${declarations} ABSOLUTE)
  string(REPLACE arm64 aarch64 musl_name ${processor})
  set(check_headers "-isystem ${check_declarations} \
-isystem ${COLLECT_CHECK_TOOLS}/musl-${processor}/usr/include/${musl_name}-linux-musl ${ARGN}")
  set(CMAKE_C_FLAGS_INIT "-nostdlibinc ${check_headers}")
  set(CMAKE_CXX_FLAGS_INIT "-nostdinc++ -nostdlibinc -D_LIBCPP_HAS_MUSL_LIBC \
-isystem /usr/lib/llvm-19/include/c++/v1 ${check_headers}")
  set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
endmacro()
