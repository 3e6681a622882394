// Any bytes as a Mach-O file: an image, or a file of several.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "daemon/symbolize/limits.h"
#include "daemon/symbolize/lookup/symbol_file.h"

namespace {

using collect::symbolize::SymbolFile;

void use(int fd, const std::vector<uint8_t>& build_id) {
  const auto file = SymbolFile::open(fd, "fuzz", build_id);
  if (!file.ok()) return;
  if ((*file)->load().ok()) {
    uint64_t last = 0;
    (*file)->each_function([&](uint64_t address, std::string_view name) {
      if (address < last || name.size() > collect::symbolize::kMaxMangledBytes + 1) std::abort();
      last = address;
      if ((*file)->find(address).offset != 0) std::abort();
    });
    (void)(*file)->find(last + 1);
  }
  (void)(*file)->debug_elf();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size >= 4 && data[0] == 0x7f) return 0;  // libelf's
  for (const std::vector<uint8_t>& build_id : {std::vector<uint8_t>(), std::vector<uint8_t>(16)}) {
    const int fd = ::memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || ::write(fd, data, size) != static_cast<ssize_t>(size)) std::abort();
    use(fd, build_id);
  }
  return 0;
}
