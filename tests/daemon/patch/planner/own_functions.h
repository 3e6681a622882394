// Functions of this test program, in assembler, whose shapes are known.
#pragma once

#include <elf.h>
#include <link.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <vector>

namespace collect::patch {

inline std::vector<uint8_t> file_bytes(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline uint64_t own_load_bias() {
  uint64_t bias = 0;
  (void)dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        *static_cast<uint64_t*>(out) = info->dlpi_addr;  // the first is the program itself
        return 1;
      },
      &bias);
  return bias;
}

inline uint32_t own_address(const void* code) {
  return static_cast<uint32_t>(reinterpret_cast<uint64_t>(code) - own_load_bias());
}

}  // namespace collect::patch

#define OWN_FUNCTION(name, body)                                                   \
  asm(".text\n.p2align 4\n.globl " #name "\n.type " #name ",@function\n" #name     \
      ":\n.cfi_startproc\n" body "\n.cfi_endproc\n.size " #name ",.-" #name "\n"); \
  extern "C" const char name[]
