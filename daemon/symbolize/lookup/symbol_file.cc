#include "daemon/symbolize/lookup/symbol_file.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace collect::symbolize {

Result<std::unique_ptr<SymbolFile>> SymbolFile::open(int fd, std::string path,
                                                     const std::vector<uint8_t>& build_id) {
  std::array<char, 4> magic{};
  const ssize_t got = ::pread(fd, magic.data(), magic.size(), 0);
  if (got == static_cast<ssize_t>(magic.size()) && std::memcmp(magic.data(), "\177ELF", 4) != 0) {
    return open_mach_o(fd, std::move(path), build_id);
  }
  return open_elf(fd, std::move(path));
}

SymbolFile::~SymbolFile() {
  ::close(fd_);
}

void SymbolFile::sort_entries() {
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
    return a.value != b.value ? a.value < b.value
           : a.rank != b.rank ? a.rank < b.rank
                              : a.name < b.name;
  });
}

FunctionSymbol SymbolFile::find(uint64_t address) const {
  auto at =
      std::upper_bound(entries_.begin(), entries_.end(), address,
                       [](uint64_t value, const Entry& entry) { return value < entry.value; });
  if (at == entries_.begin()) return {};
  const uint64_t value = std::prev(at)->value;
  at = std::lower_bound(entries_.begin(), entries_.end(), value,
                        [](const Entry& entry, uint64_t v) { return entry.value < v; });
  if (address != value && address - value >= at->size) return {};
  const std::string_view name = name_at(at->name);
  if (name.empty()) return {};
  return {name, address - value};
}

void SymbolFile::each_function(const std::function<void(uint64_t, std::string_view)>& visit) const {
  for (const Entry& entry : entries_) {
    const std::string_view name = name_at(entry.name);
    if (!name.empty()) visit(entry.value, name);
  }
}

}  // namespace collect::symbolize
