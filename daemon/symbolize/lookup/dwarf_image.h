// An ELF file in memory that holds sections of DWARF and nothing else: libdw reads DWARF in ELF
// alone, and it is the same DWARF in a Mach-O file.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "formats/core/bytes.h"

namespace collect::symbolize {

class DwarfImage {
 public:
  // `section_bytes`: of all that will be added.
  DwarfImage(bool is_arm64, uint64_t section_bytes);

  // Adds a section by its name in Mach-O and says where its bytes are to be put, until the next
  // call. Nowhere (no bytes) for one that lines of functions don't need, or that is there already.
  MutableBytes add(std::string_view mach_o_name, uint64_t bytes);
  // The file; once.
  std::vector<uint8_t> bytes() &&;

 private:
  struct Section {
    const char* name;
    uint64_t offset;
    uint64_t bytes;
  };

  const bool is_arm64_;
  std::vector<uint8_t> file_;
  std::vector<Section> sections_;
};

}  // namespace collect::symbolize
