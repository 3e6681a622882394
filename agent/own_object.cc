#include "agent/own_object.h"

#include <elf.h>
#include <link.h>

namespace collect::agent {
namespace {

struct Search {
  OwnObject found;
  bool is_first = true;  // the main executable comes first
};

void read_flags(const ElfW(Dyn) * entry, OwnObject& object) {
  for (; entry->d_tag != DT_NULL; ++entry) {
    const auto value = entry->d_un.d_val;
    if (entry->d_tag == DT_BIND_NOW) object.calls_are_bound = true;
    if (entry->d_tag == DT_FLAGS && (value & DF_BIND_NOW) != 0) object.calls_are_bound = true;
    if (entry->d_tag == DT_FLAGS_1 && (value & DF_1_NOW) != 0) object.calls_are_bound = true;
    if (entry->d_tag == DT_FLAGS_1 && (value & DF_1_NODELETE) != 0) object.stays_loaded = true;
  }
}

int look_at(dl_phdr_info* info, size_t, void* argument) {
  auto* search = static_cast<Search*>(argument);
  OwnObject object;
  object.begin = UINTPTR_MAX;
  object.stays_loaded = search->is_first;
  search->is_first = false;
  for (size_t i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    const uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_DYNAMIC) {
      read_flags(reinterpret_cast<const ElfW(Dyn)*>(begin), object);
    } else if (segment.p_type == PT_LOAD) {
      if (begin < object.begin) object.begin = begin;
      if (begin + segment.p_memsz > object.end) object.end = begin + segment.p_memsz;
    }
  }
  static const char inside = 0;
  const auto here = reinterpret_cast<uintptr_t>(&inside);
  if (here < object.begin || here >= object.end) return 0;
  search->found = object;
  return 1;
}

}  // namespace

OwnObject find_own_object() {
  Search search;
  (void)dl_iterate_phdr(look_at, &search);
  return search.found;
}

}  // namespace collect::agent
