# Warnings, sanitizers, linker and compiler cache: what holds for every target of ours.
# `collect_target(<target>)` applies it; generated code is left alone.

find_program(COLLECT_CCACHE ccache)
if(COLLECT_CCACHE)
  # What ccache wants before it keeps objects that use precompiled headers.
  set(COLLECT_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
      ${COLLECT_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${COLLECT_LAUNCHER})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${COLLECT_LAUNCHER})
endif()

# Lines and functions for stack traces, not the variables: a third of the compile time.
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG")

# Of what a large unit needs g++ throws away what it can after each 128 MB, which takes up to an eighth of its
# time; after each 512 MB it needs a tenth more memory.
add_compile_options($<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=524288>)

# No path of the machine that built it in any object.
add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.)
if(COLLECT_AGENT_ONLY)
  # Published agents: the same bytes from any build folder. What is built elsewhere has -g1 names in it.
  add_compile_options(-ffile-prefix-map=${CMAKE_BINARY_DIR}=./build)
endif()

find_program(COLLECT_MOLD mold)
if(COLLECT_MOLD AND NOT CMAKE_CROSSCOMPILING)
  add_link_options(-fuse-ld=mold)
endif()

find_package(Threads REQUIRED)

if(COLLECT_SANITIZE)
  add_compile_options(-fsanitize=${COLLECT_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${COLLECT_SANITIZE})
elseif(COLLECT_FUZZ)
  add_compile_options(-fsanitize=address,undefined,fuzzer-no-link -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=address,undefined)
endif()

# Asio 1.22 looks for <experimental/coroutine> under clang; the standard ones are there.
add_compile_definitions(ASIO_STANDALONE ASIO_NO_DEPRECATED)
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  add_compile_definitions(ASIO_HAS_CO_AWAIT ASIO_HAS_STD_COROUTINE)
endif()

function(collect_target target)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic -Werror -Wshadow -Wconversion -Wno-sign-conversion
    $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor;-Woverloaded-virtual>
    # std::stable_sort of GCC's library calls what the same library calls deprecated.
    $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-deprecated-declarations>)
  if(COLLECT_UNITY)
    # Of a Result in a large unit g++ 12 says that its Error may be unset where it holds a value.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized>)
  endif()
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
endfunction()

# For code that waits for users, devices and disks: a fifth less to compile.
function(collect_compile_fast target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O1>)
endfunction()

# For the programs of the tests; what they test is compiled as always. Two fifths less than -O1 -g1, and
# clang, where it is there, takes half of the time of g++. Not for sanitizers: each compiler has its own.
find_program(COLLECT_TEST_COMPILER clang++-19)
set(COLLECT_TEST_LAUNCHER)
if(COLLECT_TEST_COMPILER AND CMAKE_CXX_COMPILER_ID STREQUAL GNU AND NOT CMAKE_CROSSCOMPILING AND NOT COLLECT_SANITIZE
   AND NOT COLLECT_FUZZ)
  set(launcher ${COLLECT_LAUNCHER})
  if(NOT launcher)
    set(launcher env)
  endif()
  list(POP_BACK launcher program)
  set(COLLECT_TEST_LAUNCHER ${launcher} sh ${PROJECT_SOURCE_DIR}/cmake/compile_by.sh ${program}
      ${COLLECT_TEST_COMPILER})
endif()
function(collect_compile_test target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O0;-g0>)
  if(COLLECT_TEST_LAUNCHER)
    set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER "${COLLECT_TEST_LAUNCHER}")
    # Functions of Asio that g++ 12 names otherwise come from its headers.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-UASIO_SEPARATE_COMPILATION;
      -Wno-deprecated-declarations;-Wno-unknown-warning-option;-Wno-unused-command-line-argument>)
    target_compile_definitions(${target} PRIVATE ASIO_HAS_CO_AWAIT ASIO_HAS_STD_COROUTINE)
  endif()
endfunction()
