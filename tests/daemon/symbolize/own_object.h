// The test program as a module: where it is loaded, its build id, its file.
#pragma once

#include <link.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "formats/core/bytes.h"
#include "storage/model/session_types.h"

namespace collect::symbolize::test {

struct OwnObject {
  uint64_t bias = 0;
  std::vector<uint8_t> build_id;
};

inline OwnObject own_object() {
  OwnObject own;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        OwnObject& object = *static_cast<OwnObject*>(out);
        object.bias = info->dlpi_addr;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          if (info->dlpi_phdr[i].p_type != PT_NOTE) continue;
          const auto* at =
              reinterpret_cast<const uint8_t*>(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
          const uint8_t* const end = at + info->dlpi_phdr[i].p_memsz;
          while (at + 12 <= end) {
            const auto name = load_le<uint32_t>(at);
            const auto bytes = load_le<uint32_t>(at + 4);
            const auto type = load_le<uint32_t>(at + 8);
            const uint8_t* const value = at + 12 + (name + 3) / 4 * 4;
            if (type == 3) object.build_id.assign(value, value + bytes);
            at = value + (bytes + 3) / 4 * 4;
          }
        }
        return 1;  // the first one is the program
      },
      &own);
  return own;
}

inline std::string own_path() {
  return std::filesystem::read_symlink("/proc/self/exe").string();
}

inline storage::ModuleInfo own_module() {
  storage::ModuleInfo module;
  module.path = own_path();
  module.build_id = own_object().build_id;
  return module;
}

}  // namespace collect::symbolize::test
