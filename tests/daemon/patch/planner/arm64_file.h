// A file for arm64, as a test on any machine reads it.
#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

namespace collect::patch {

inline std::vector<uint8_t> arm64_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The functions among its dynamic symbols. The file is one that this tree's tests have built.
inline std::map<std::string, uint32_t> arm64_symbols(const std::string& path) {
  const std::vector<uint8_t> file = arm64_file(path);
  const auto at = [&file](uint64_t offset, auto& out) {
    std::memcpy(&out, file.data() + offset, sizeof out);
  };
  Elf64_Ehdr header;
  at(0, header);
  std::map<std::string, uint32_t> symbols;
  for (uint32_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    at(header.e_shoff + i * sizeof section, section);
    if (section.sh_type != SHT_DYNSYM) continue;
    Elf64_Shdr names;
    at(header.e_shoff + section.sh_link * sizeof names, names);
    for (uint64_t offset = 0; offset < section.sh_size; offset += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      at(section.sh_offset + offset, symbol);
      if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF) continue;
      const char* const name =
          reinterpret_cast<const char*>(file.data() + names.sh_offset + symbol.st_name);
      symbols[name] = static_cast<uint32_t>(symbol.st_value);
    }
  }
  return symbols;
}

}  // namespace collect::patch
