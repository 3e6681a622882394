#include "daemon/inject/borrowing.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

namespace collect::inject {
namespace {

constexpr uint64_t kMaxTableBytes = 64u << 20;  // of dynamic symbols or of their names

bool read_at(std::ifstream& file, uint64_t offset, void* to, size_t bytes) {
  file.clear();
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(static_cast<char*>(to), static_cast<std::streamsize>(bytes));
  return file.gcount() == static_cast<std::streamsize>(bytes);
}

template <class T>
bool read_table(std::ifstream& file, uint64_t offset, uint64_t bytes, std::vector<T>& table) {
  if (bytes > kMaxTableBytes) return false;
  table.resize(bytes / sizeof(T));
  return read_at(file, offset, table.data(), table.size() * sizeof(T));
}

bool has_defined(const std::vector<Elf64_Sym>& symbols, const std::vector<char>& names,
                 const std::string& symbol) {
  return std::any_of(symbols.begin(), symbols.end(), [&](const Elf64_Sym& one) {
    return one.st_shndx != SHN_UNDEF && one.st_name < names.size() &&
           names.size() - one.st_name > symbol.size() &&
           std::memcmp(names.data() + one.st_name, symbol.c_str(), symbol.size() + 1) == 0;
  });
}

}  // namespace

bool defines(const std::string& path, const std::string& symbol) {
  std::ifstream file(path, std::ios::binary);
  Elf64_Ehdr header{};
  if (!read_at(file, 0, &header, sizeof header) || header.e_shentsize != sizeof(Elf64_Shdr) ||
      header.e_shnum == 0) {
    return true;
  }
  std::vector<Elf64_Shdr> sections;
  if (!read_table(file, header.e_shoff, uint64_t{header.e_shnum} * sizeof(Elf64_Shdr), sections)) {
    return true;
  }
  for (const Elf64_Shdr& one : sections) {
    if (one.sh_type != SHT_DYNSYM) continue;
    std::vector<Elf64_Sym> symbols;
    std::vector<char> names;
    if (one.sh_link >= sections.size() || !read_table(file, one.sh_offset, one.sh_size, symbols) ||
        !read_table(file, sections[one.sh_link].sh_offset, sections[one.sh_link].sh_size, names)) {
      return true;
    }
    return has_defined(symbols, names, symbol);
  }
  return false;
}

bool SafePoints::is_safe(const user_regs_struct& registers, bool may_run) {
  const auto there =
      std::find_if(target_.code.begin(), target_.code.end(), [&registers](const CodeRange& range) {
        return registers.rip >= range.begin && registers.rip < range.end;
      });
  // Code without a file may be anything.
  if (there == target_.code.end() || !there->path.starts_with('/')) return false;
  const std::string name = std::filesystem::path(there->path).filename().string();
  if (name.starts_with("ld-")) return false;
  if (is_blocked(registers)) return true;
  if (!may_run) return false;
  const auto known = allocators_.find(there->path);
  if (known != allocators_.end()) return !known->second;
  return !allocators_.emplace(there->path, defines(there->path, "malloc")).first->second;
}

}  // namespace collect::inject
