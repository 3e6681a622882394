#include "daemon/ctl/preload_check.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

namespace collect::ctl {
namespace {

constexpr uint32_t kMaxProgramHeaders = 512;

bool read_at(int file, void* to, size_t bytes, uint64_t offset) {
  return ::pread(file, to, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
}

// Of an ELF file of 64 bits; anything else is not judged.
bool has_no_interpreter(int file) {
  Elf64_Ehdr header;
  if (!read_at(file, &header, sizeof header, 0)) return false;
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum == 0 ||
      header.e_phnum > kMaxProgramHeaders) {
    return false;
  }
  for (uint32_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (!read_at(file, &segment, sizeof segment, header.e_phoff + i * sizeof segment)) return false;
    if (segment.p_type == PT_INTERP) return false;
  }
  return true;
}

}  // namespace

std::string why_no_preload(const std::string& program) {
  const int file = ::open(program.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return {};
  struct stat status{};
  std::string why;
  if (::fstat(file, &status) == 0 && S_ISREG(status.st_mode)) {
    // A program of the caller's own gives nobody other rights.
    if ((status.st_mode & S_ISUID) != 0 && status.st_uid != ::geteuid()) {
      why = "is set-user-id";
    } else if ((status.st_mode & S_ISGID) != 0 && status.st_gid != ::getegid()) {
      why = "is set-group-id";
    } else if (has_no_interpreter(file)) {
      why = "is linked statically";
    }
  }
  ::close(file);
  return why;
}

}  // namespace collect::ctl
