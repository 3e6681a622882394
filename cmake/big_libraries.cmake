# Libraries whose headers take most of the build: compiled once.

find_path(COLLECT_ASIO asio.hpp REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(Protobuf REQUIRED)
find_package(GTest REQUIRED)
find_package(gRPC CONFIG REQUIRED)

# gRPC and what it is built on are 45 shared libraries, and a program that links them takes three times as
# long to start: linked into it where their archives are there. OpenSSL, zlib and c-ares, which read
# untrusted bytes first, stay shared, so that the system's updates reach them.
# ThreadSanitizer, which does not see their locks, knows them by the names of the shared ones.
option(COLLECT_STATIC_GRPC "Link gRPC, Abseil and Protobuf statically" ON)
if(COLLECT_STATIC_GRPC AND NOT COLLECT_SANITIZE MATCHES thread)
  get_property(imported DIRECTORY PROPERTY IMPORTED_TARGETS)
  list(FILTER imported INCLUDE REGEX "^(gRPC|absl|protobuf)::")
  foreach(library IN LISTS imported)
    get_target_property(configurations ${library} IMPORTED_CONFIGURATIONS)
    list(TRANSFORM configurations PREPEND IMPORTED_LOCATION_)
    foreach(place IN LISTS configurations ITEMS IMPORTED_LOCATION)
      get_target_property(shared ${library} ${place})
      string(REGEX REPLACE "\\.so[.0-9]*$" ".a" archive "${shared}")
      if(shared AND EXISTS "${archive}")
        set_target_properties(${library} PROPERTIES ${place} "${archive}")
      endif()
    endforeach()
  endforeach()
endif()

# Asio compiled once, in a file of its own, instead of in everything that includes it.
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/big_libraries/asio.cc CONTENT
  "#include <asio/impl/src.hpp>\n")
add_library(collect_asio STATIC ${CMAKE_BINARY_DIR}/big_libraries/asio.cc)
target_include_directories(collect_asio SYSTEM PUBLIC ${COLLECT_ASIO})
# Without the second, whether Asio allocates with aligned_alloc or with operator new depends on the
# headers that a translation unit included before, and one frees what the other allocated.
target_compile_definitions(collect_asio PUBLIC
  ASIO_SEPARATE_COMPILATION ASIO_DISABLE_STD_ALIGNED_ALLOC)
target_link_libraries(collect_asio PUBLIC Threads::Threads)
# Asio's fences are not understood by the thread sanitizer, and g++ warns of that wherever its headers
# are included; no report has come of it.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  target_compile_options(collect_asio PUBLIC -Wno-tsan)
endif()

# Some libraries ask for it, and precompiled headers must be compiled with the same options.
add_compile_options(-pthread)

# collect_precompile(<target> <set>): the target's files begin with the headers of a set. Each of
# them includes what it uses all the same: COLLECT_PCH=OFF shows whether it does. Not for targets
# with C files.
option(COLLECT_PCH "Precompile the headers of the big libraries" ON)
function(collect_precompile target set)
  get_target_property(sources ${target} SOURCES)
  if(COLLECT_PCH AND CMAKE_CXX_COMPILER_ID STREQUAL GNU AND NOT sources MATCHES "\\.c(;|$)")
    target_precompile_headers(${target} REUSE_FROM collect_pch_${set})
    # The first is for ccache. Of lines in precompiled headers g++ 12 does not know that they are the
    # system's: it gives the false warnings of std::string that it keeps back otherwise.
    target_compile_options(${target} PRIVATE -fpch-preprocess
      -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread)
  endif()
endfunction()

# A library, because libraries are compiled -fPIC and programs -fPIE, and g++ takes no headers of the
# other kind.
if(COLLECT_PCH AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/big_libraries/library.cc CONTENT "\n")
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/big_libraries/program.cc CONTENT "int main() {}\n")
  set(standard_headers
    <algorithm> <array> <atomic> <chrono> <condition_variable> <cstdint> <cstring> <deque>
    <functional> <map> <memory> <mutex> <optional> <set> <span> <string> <string_view> <thread>
    <unordered_map> <unordered_set> <utility> <variant> <vector>)

  add_library(collect_pch_network STATIC ${CMAKE_BINARY_DIR}/big_libraries/library.cc)
  target_link_libraries(collect_pch_network
    PRIVATE collect_asio OpenSSL::SSL spdlog::spdlog protobuf::libprotobuf)
  target_precompile_headers(collect_pch_network PRIVATE ${standard_headers}
    <asio/buffer.hpp> <asio/generic/stream_protocol.hpp> <asio/io_context.hpp> <asio/ip/tcp.hpp>
    <asio/local/stream_protocol.hpp> <asio/post.hpp> <asio/steady_timer.hpp>
    <google/protobuf/message.h> <google/protobuf/repeated_field.h> <spdlog/spdlog.h>)

  add_library(collect_pch_json STATIC ${CMAKE_BINARY_DIR}/big_libraries/library.cc)
  target_link_libraries(collect_pch_json PRIVATE nlohmann_json::nlohmann_json)
  target_precompile_headers(collect_pch_json PRIVATE ${standard_headers} <nlohmann/json.hpp>)

  add_executable(collect_pch_tests EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/big_libraries/program.cc)
  target_link_libraries(collect_pch_tests
    PRIVATE GTest::gtest GTest::gmock nlohmann_json::nlohmann_json)
  target_precompile_headers(collect_pch_tests PRIVATE ${standard_headers}
    <filesystem> <fstream> <gmock/gmock.h> <gtest/gtest.h> <nlohmann/json.hpp>)

  collect_compile_test(collect_pch_tests)
  foreach(set network json tests)
    collect_target(collect_pch_${set})  # g++ compares the options
    target_compile_options(collect_pch_${set} PRIVATE -fpch-preprocess)
  endforeach()
endif()
