#include "agent/ring/modules.h"

#include <elf.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#include <new>

#include "agent/ring/stream.h"
#include "agent/shared_memory.h"

namespace collect::agent {
namespace {

struct LiveRange {
  uint64_t begin;  // of its lowest segment
  uint64_t end;
  uint64_t base;
  uint32_t index;  // into records, which is the module id
};

// A table that is read while it is written, between two looks at its version: each word is released
// by the writer and acquired by the reader, so that who sees a new one sees the odd version too.
template <class T>
void put(T& place, T value) {
  std::atomic_ref<T>(place).store(value, std::memory_order_release);
}
template <class T>
T get(T& place) {
  return std::atomic_ref<T>(place).load(std::memory_order_acquire);
}

// Constant after the start.
ModuleRecord* records = nullptr;
LiveRange* live_ranges = nullptr;
LiveRange* next_ranges = nullptr;

struct alignas(kSharedPage) Modules {
  std::atomic<uint32_t> count{0};
  std::atomic<uint32_t> changes{0};
  std::atomic<uint64_t> adds{0};  // the loader's own counters at the last scan
  std::atomic<uint64_t> subs{0};
  // Live objects sorted by address. Written inside the loader's lock only; read under a version.
  std::atomic<uint32_t> version{0};
  uint32_t live_count = 0;
  // Used by the scan alone, inside the loader's lock.
  uint32_t next_count = 0;
};
constinit Modules modules;

struct Extent {
  uint64_t begin = UINT64_MAX;
  uint64_t end = 0;
};

Extent loaded_extent(const dl_phdr_info& info) {
  Extent extent;
  for (size_t i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    const uint64_t begin = info.dlpi_addr + segment.p_vaddr;
    const uint64_t end = begin + segment.p_memsz;
    if (begin < extent.begin) extent.begin = begin;
    if (end > extent.end) extent.end = end;
  }
  return extent;
}

void read_build_id(const dl_phdr_info& info, ModuleRecord& record) {
  for (size_t i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* at = reinterpret_cast<const uint8_t*>(info.dlpi_addr + segment.p_vaddr);
    const uint8_t* end = at + segment.p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      ElfW(Nhdr) note;
      memcpy(&note, at, sizeof note);
      const uint8_t* name = at + sizeof note;
      const uint8_t* desc = name + ((note.n_namesz + 3u) & ~3u);
      if (desc + note.n_descsz > end) break;
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(name, "GNU", 4) == 0) {
        record.build_id_bytes = note.n_descsz < kMaxBuildId ? note.n_descsz : kMaxBuildId;
        memcpy(record.build_id, desc, record.build_id_bytes);
        return;
      }
      at = desc + ((note.n_descsz + 3u) & ~3u);
    }
  }
}

void copy_path(const char* from, ModuleRecord& record) {
  if (from != nullptr && from[0] != '\0') {
    const size_t bytes = strnlen(from, kMaxModulePath - 1);
    memcpy(record.path, from, bytes);
    record.path[bytes] = '\0';
    return;
  }
  // The main executable has no name in the loader's list.
  const ssize_t bytes = readlink("/proc/self/exe", record.path, kMaxModulePath - 1);
  record.path[bytes > 0 ? bytes : 0] = '\0';
}

// Same object as at the last scan? Base and extent alone could belong to its successor, so the
// loader's "unloaded something" counter decides: without unloads, equal ranges are the same object.
const LiveRange* find_known(const Extent& extent, uint64_t base) {
  for (uint32_t i = 0; i < modules.live_count; ++i) {
    const LiveRange& range = live_ranges[i];
    if (range.begin == extent.begin && range.end == extent.end && range.base == base) return &range;
  }
  return nullptr;
}

bool same_object(const ModuleRecord& known, const dl_phdr_info& info) {
  ModuleRecord now{};
  copy_path(info.dlpi_name, now);
  if (strcmp(known.path, now.path) != 0) return false;
  read_build_id(info, now);
  return known.build_id_bytes == now.build_id_bytes &&
         memcmp(known.build_id, now.build_id, now.build_id_bytes) == 0;
}

int note_object(dl_phdr_info* info, size_t, void*) {
  const Extent extent = loaded_extent(*info);
  if (extent.end <= extent.begin || modules.next_count == kMaxModules) return 0;
  LiveRange range{extent.begin, extent.end, info->dlpi_addr, 0};
  const LiveRange* known = find_known(extent, info->dlpi_addr);
  if (known != nullptr && same_object(records[known->index], *info)) {
    range.index = known->index;
  } else {
    const uint32_t index = modules.count.load(std::memory_order_relaxed);
    if (index == kMaxModules) return 0;  // its calls are recorded under kUnknownModule
    auto* record = new (&records[index]) ModuleRecord{};
    record->module_id = index;
    copy_path(info->dlpi_name, *record);
    read_build_id(*info, *record);
    record->base_address = info->dlpi_addr;
    record->size = extent.end - info->dlpi_addr;
    record->loaded_ns = now_ns();
    range.index = index;
    modules.count.store(index + 1, std::memory_order_release);  // pairs with module_count()
  }
  uint32_t place = modules.next_count++;
  for (; place > 0 && next_ranges[place - 1].begin > range.begin; --place) {
    next_ranges[place] = next_ranges[place - 1];
  }
  next_ranges[place] = range;
  return 0;
}

void mark_unloaded() {
  for (uint32_t i = 0; i < modules.live_count; ++i) {
    bool stays = false;
    for (uint32_t k = 0; k < modules.next_count && !stays; ++k) {
      stays = next_ranges[k].index == live_ranges[i].index;
    }
    if (!stays) {
      records[live_ranges[i].index].unloaded_ns.store(now_ns(), std::memory_order_release);
    }
  }
}

void publish_live() {
  const uint32_t version = modules.version.load(std::memory_order_relaxed);
  modules.version.store(version + 1, std::memory_order_relaxed);  // odd: readers retry
  for (uint32_t i = 0; i < modules.next_count; ++i) {
    put(live_ranges[i].begin, next_ranges[i].begin);
    put(live_ranges[i].end, next_ranges[i].end);
    put(live_ranges[i].base, next_ranges[i].base);
    put(live_ranges[i].index, next_ranges[i].index);
  }
  put(modules.live_count, modules.next_count);
  modules.version.store(version + 2, std::memory_order_release);  // pairs with look_up's acquire
}

struct ScanResult {
  bool changed = false;
};

// Runs with the loader's lock held: the outer dl_iterate_phdr took it, the inner one takes it
// again, which the same thread may. So scans exclude each other without a lock of ours, which a
// callback of the host's own dl_iterate_phdr could deadlock with.
int scan_in_lock(dl_phdr_info* info, size_t size, void* argument) {
  auto* result = static_cast<ScanResult*>(argument);
  uint64_t adds = 0;
  uint64_t subs = 0;
  if (size >= offsetof(dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs) {
    adds = info->dlpi_adds;
    subs = info->dlpi_subs;
    if (get(modules.live_count) != 0 && adds == modules.adds.load(std::memory_order_relaxed) &&
        subs == modules.subs.load(std::memory_order_relaxed)) {
      return 1;
    }
  }
  modules.next_count = 0;
  dl_iterate_phdr(note_object, nullptr);
  mark_unloaded();
  publish_live();
  modules.adds.store(adds, std::memory_order_relaxed);
  modules.subs.store(subs, std::memory_order_relaxed);
  modules.changes.fetch_add(1, std::memory_order_release);
  result->changed = true;
  return 1;
}

bool look_up(uint64_t address, ModuleRange& found) {
  for (;;) {
    const uint32_t before = modules.version.load(std::memory_order_acquire);
    bool hit = false;
    uint32_t low = 0;
    uint32_t high = get(modules.live_count);
    while (low < high) {
      const uint32_t middle = (low + high) / 2;
      LiveRange& live = live_ranges[middle];
      const LiveRange range{get(live.begin), get(live.end), get(live.base), get(live.index)};
      if (address < range.begin) {
        high = middle;
      } else if (address >= range.end) {
        low = middle + 1;
      } else {
        found = {range.base, range.end - range.base, range.index};
        hit = true;
        break;
      }
    }
    if (before % 2 == 0 && modules.version.load(std::memory_order_relaxed) == before) return hit;
  }
}

}  // namespace

bool modules_init() {
  if (!share(modules)) return false;
  records = static_cast<ModuleRecord*>(map_table(sizeof(ModuleRecord) * kMaxModules, records));
  constexpr size_t kRangeBytes = sizeof(LiveRange) * kMaxModules * 2;
  live_ranges = static_cast<LiveRange*>(map_table(kRangeBytes, live_ranges));
  if (records == nullptr || live_ranges == nullptr) return false;
  next_ranges = live_ranges + kMaxModules;
  modules.count.store(0, std::memory_order_relaxed);
  modules.live_count = 0;
  modules_scan();
  return true;
}

bool modules_scan() {
  ScanResult result;
  dl_iterate_phdr(scan_in_lock, &result);
  if (result.changed) change_state(0, 0);
  return result.changed;
}

bool module_find(uint64_t address, ModuleRange& range) {
  if (look_up(address, range)) return true;
  if (modules_scan() && look_up(address, range)) return true;
  return false;
}

uint32_t module_count() {
  return modules.count.load(std::memory_order_acquire);
}
const ModuleRecord& module_at(uint32_t index) {
  return records[index];
}
uint32_t module_changes() {
  return modules.changes.load(std::memory_order_acquire);
}

}  // namespace collect::agent
