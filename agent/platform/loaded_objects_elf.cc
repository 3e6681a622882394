// Linux and Android. The dynamic linker's lock is the one that keeps scans apart: the outer
// dl_iterate_phdr takes it, the inner one takes it again, which the same thread may. A lock of our
// own could deadlock with a callback of the host's own dl_iterate_phdr.
#include <elf.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#include "agent/platform/loaded_objects.h"
#include "agent/platform/system.h"

namespace collect::agent {
namespace {

struct Scan {
  void (*function)(uint64_t loads, uint64_t unloads, void* argument);
  void* argument;
};

int in_lock(dl_phdr_info* info, size_t size, void* argument) {
  const auto* scan = static_cast<const Scan*>(argument);
  const bool counted = size >= offsetof(dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs;
  scan->function(counted ? info->dlpi_adds : kObjectsUncounted,
                 counted ? info->dlpi_subs : kObjectsUncounted, scan->argument);
  return 1;
}

struct Visit {
  void (*function)(const LoadedObject& object, void* argument);
  void* argument;
};

// The main executable has no name in glibc's list, and in a static program of musl's one that only
// the process itself can follow.
const char* path_of(const dl_phdr_info& info) {
  const char* const path = info.dlpi_name;
  return path == nullptr || strcmp(path, "/proc/self/exe") == 0 ? "" : path;
}

int visit_one(dl_phdr_info* info, size_t, void* argument) {
  LoadedObject object{info->dlpi_addr, UINT64_MAX,      0,
                      path_of(*info),  info->dlpi_phdr, info->dlpi_phnum};
  for (size_t i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    const uint64_t begin = info->dlpi_addr + segment.p_vaddr;
    const uint64_t end = begin + segment.p_memsz;
    if (begin < object.begin) object.begin = begin;
    if (end > object.end) object.end = end;
  }
  const auto* visit = static_cast<const Visit*>(argument);
  if (object.end > object.begin) visit->function(object, visit->argument);
  return 0;
}

}  // namespace

void with_objects(void (*scan)(uint64_t, uint64_t, void*), void* argument) {
  Scan wanted{scan, argument};
  (void)dl_iterate_phdr(in_lock, &wanted);
}

void for_each_object(void (*visit)(const LoadedObject&, void*), void* argument) {
  Visit wanted{visit, argument};
  (void)dl_iterate_phdr(visit_one, &wanted);
}

bool objects_changed() {
  return false;
}

uint32_t read_build_id(const LoadedObject& object, uint8_t* out, uint32_t out_bytes) {
  const auto* segments = static_cast<const ElfW(Phdr)*>(object.headers);
  for (size_t i = 0; i < object.header_count; ++i) {
    const ElfW(Phdr)& segment = segments[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* at = reinterpret_cast<const uint8_t*>(object.base + segment.p_vaddr);
    const uint8_t* end = at + segment.p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      ElfW(Nhdr) note;
      memcpy(&note, at, sizeof note);
      const uint8_t* name = at + sizeof note;
      const uint8_t* desc = name + ((note.n_namesz + 3u) & ~3u);
      if (desc + note.n_descsz > end) break;
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(name, "GNU", 4) == 0) {
        const uint32_t bytes = note.n_descsz < out_bytes ? note.n_descsz : out_bytes;
        memcpy(out, desc, bytes);
        return bytes;
      }
      at = desc + ((note.n_descsz + 3u) & ~3u);
    }
  }
  return 0;
}

size_t read_executable_path(char* out, size_t out_bytes) {
  const ssize_t bytes = sys::readlink("/proc/self/exe", out, out_bytes - 1);
  const size_t length = bytes > 0 ? static_cast<size_t>(bytes) : 0;
  out[length] = '\0';
  return length;
}

}  // namespace collect::agent
