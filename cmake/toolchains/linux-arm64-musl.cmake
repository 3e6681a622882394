# Static arm64 programs that run on any Linux, and on Android from /data/local/tmp: clang 19, lld, and
# the musl that deploy/cross-tools.sh fetches. Of the C++ library headers alone are used; the kernel's
# headers and libgcc are those of Debian's cross compiler.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER clang-19)
set(CMAKE_CXX_COMPILER clang++-19)
set(CMAKE_C_COMPILER_TARGET aarch64-linux-musl)
set(CMAKE_CXX_COMPILER_TARGET aarch64-linux-musl)
set(CMAKE_ASM_COMPILER_TARGET aarch64-linux-musl)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static)

get_filename_component(tools ${CMAKE_CURRENT_LIST_DIR}/../../build/tools ABSOLUTE)
set(COLLECT_MUSL ${tools}/musl-arm64/usr CACHE PATH "usr of an unpacked musl-dev for arm64")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES COLLECT_MUSL)
set(musl_lib ${COLLECT_MUSL}/lib/aarch64-linux-musl)

set(musl_headers "-isystem ${COLLECT_MUSL}/include/aarch64-linux-musl \
-isystem ${tools}/linux-arm64")
set(CMAKE_C_FLAGS_INIT "-nostdlibinc ${musl_headers}")
set(CMAKE_CXX_FLAGS_INIT "-nostdinc++ -nostdlibinc -D_LIBCPP_HAS_MUSL_LIBC -isystem /usr/lib/llvm-19/include/c++/v1 \
${musl_headers}")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-static -nostdlib -fuse-ld=lld-19 ${musl_lib}/crt1.o \
${musl_lib}/crti.o -L${musl_lib} -L/usr/lib/gcc-cross/aarch64-linux-gnu/12")
set(CMAKE_C_STANDARD_LIBRARIES "-lc -lgcc ${musl_lib}/crtn.o")
set(CMAKE_CXX_STANDARD_LIBRARIES ${CMAKE_C_STANDARD_LIBRARIES})
# There is no shared musl here to link a library with.
set(COLLECT_AGENT_SHARED OFF CACHE BOOL "Build libcollect_agent.so")

set(CMAKE_FIND_ROOT_PATH ${COLLECT_MUSL})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
