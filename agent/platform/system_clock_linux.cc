// Where the kernel has put its clocks into this process (vDSO). Valgrind and some sandboxes hide
// it.
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>

#include "agent/platform/system.h"

#if !defined(COLLECT_SYSTEM_BY_LIBRARY)

namespace collect::agent::sys {
namespace {

#if defined(__x86_64__)
constexpr char kClock[] = "__vdso_clock_gettime";
#else
constexpr char kClock[] = "__kernel_clock_gettime";
#endif

struct Symbols {
  uintptr_t base = 0;  // what addresses in it are relative to
  const ElfW(Sym) * first = nullptr;
  const char* names = nullptr;
};

Symbols symbols_of(const ElfW(Ehdr) & object) {
  const auto at = reinterpret_cast<uintptr_t>(&object);
  const auto* segments = reinterpret_cast<const ElfW(Phdr)*>(at + object.e_phoff);
  const ElfW(Dyn)* entry = nullptr;
  Symbols symbols;
  for (size_t i = 0; i < object.e_phnum; ++i) {
    if (segments[i].p_type == PT_LOAD && segments[i].p_offset == 0) {
      symbols.base = at - segments[i].p_vaddr;
    } else if (segments[i].p_type == PT_DYNAMIC) {
      entry = reinterpret_cast<const ElfW(Dyn)*>(at + segments[i].p_offset);
    }
  }
  for (; symbols.base != 0 && entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
    const uintptr_t there = symbols.base + entry->d_un.d_ptr;
    if (entry->d_tag == DT_SYMTAB) symbols.first = reinterpret_cast<const ElfW(Sym)*>(there);
    if (entry->d_tag == DT_STRTAB) symbols.names = reinterpret_cast<const char*>(there);
  }
  return symbols;
}

}  // namespace

ClockFunction g_clock = nullptr;

void find_clock() {
  const auto* object = reinterpret_cast<const ElfW(Ehdr)*>(getauxval(AT_SYSINFO_EHDR));
  if (object == nullptr || memcmp(object->e_ident, ELFMAG, SELFMAG) != 0) return;
  const Symbols symbols = symbols_of(*object);
  if (symbols.first == nullptr || symbols.names == nullptr) return;
  // The linker puts the names right behind the symbols.
  const auto* end = reinterpret_cast<const ElfW(Sym)*>(symbols.names);
  for (const ElfW(Sym)* symbol = symbols.first; symbol + 1 <= end; ++symbol) {
    if (symbol->st_shndx == SHN_UNDEF || strcmp(symbols.names + symbol->st_name, kClock) != 0) {
      continue;
    }
    g_clock = reinterpret_cast<ClockFunction>(symbols.base + symbol->st_value);
    return;
  }
}

}  // namespace collect::agent::sys

#endif
