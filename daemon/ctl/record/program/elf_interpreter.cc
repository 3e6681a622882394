#include "daemon/ctl/record/program/elf_interpreter.h"

#include <elf.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <cstring>

namespace collect::ctl {
namespace {

constexpr uint32_t kMaxProgramHeaders = 512;  // a file with more is not read

bool read_at(int file, void* to, size_t bytes, uint64_t offset) {
  return ::pread(file, to, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
}

}  // namespace

std::optional<std::string> elf_interpreter(int file) {
  Elf64_Ehdr header;
  if (!read_at(file, &header, sizeof header, 0)) return std::nullopt;
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum == 0 ||
      header.e_phnum > kMaxProgramHeaders) {
    return std::nullopt;
  }
  for (uint32_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (!read_at(file, &segment, sizeof segment, header.e_phoff + i * sizeof segment)) {
      return std::nullopt;
    }
    if (segment.p_type != PT_INTERP) continue;
    std::string name(std::min<uint64_t>(segment.p_filesz, PATH_MAX), '\0');
    if (!read_at(file, name.data(), name.size(), segment.p_offset)) return std::nullopt;
    name.resize(::strnlen(name.data(), name.size()));
    // The kernel takes no program with another name.
    if (name.empty() || name.size() == PATH_MAX) return std::nullopt;
    return name;
  }
  return "";
}

}  // namespace collect::ctl
