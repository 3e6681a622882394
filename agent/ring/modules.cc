#include "agent/ring/modules.h"

#include <string.h>

#include <new>

#include "agent/platform/loaded_objects.h"
#include "agent/ring/state.h"
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
char executable_path[kMaxModulePath];  // hooks can't ask for it

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

void copy_path(const char* from, ModuleRecord& record) {
  if (from[0] == '\0') {
    // The main executable has no name in some dynamic linkers' lists.
    memcpy(record.path, executable_path, sizeof executable_path);
    return;
  }
  const size_t bytes = strnlen(from, kMaxModulePath - 1);
  memcpy(record.path, from, bytes);
  record.path[bytes] = '\0';
}

// Same object as at the last scan? Base and extent alone could belong to its successor, so the
// loader's "unloaded something" counter decides: without unloads, equal ranges are the same object.
const LiveRange* find_known(const LoadedObject& object) {
  for (uint32_t i = 0; i < modules.live_count; ++i) {
    const LiveRange& range = live_ranges[i];
    if (range.begin == object.begin && range.end == object.end && range.base == object.base) {
      return &range;
    }
  }
  return nullptr;
}

bool same_object(const ModuleRecord& known, const LoadedObject& object) {
  ModuleRecord now{};
  copy_path(object.path, now);
  if (strcmp(known.path, now.path) != 0) return false;
  now.build_id_bytes = read_build_id(object, now.build_id, kMaxBuildId);
  return known.build_id_bytes == now.build_id_bytes &&
         memcmp(known.build_id, now.build_id, now.build_id_bytes) == 0;
}

void note_object(const LoadedObject& object, void*) {
  if (modules.next_count == kMaxModules) return;
  LiveRange range{object.begin, object.end, object.base, 0};
  const LiveRange* known = find_known(object);
  if (known != nullptr && same_object(records[known->index], object)) {
    range.index = known->index;
  } else {
    const uint32_t index = modules.count.load(std::memory_order_relaxed);
    if (index == kMaxModules) return;  // its calls are recorded under kUnknownModule
    auto* record = new (&records[index]) ModuleRecord{};
    record->module_id = index;
    copy_path(object.path, *record);
    record->build_id_bytes = read_build_id(object, record->build_id, kMaxBuildId);
    record->base_address = object.base;
    record->size = object.end - object.base;
    record->loaded_ns = now_ns();
    range.index = index;
    modules.count.store(index + 1, std::memory_order_release);  // pairs with module_count()
  }
  uint32_t place = modules.next_count++;
  for (; place > 0 && next_ranges[place - 1].begin > range.begin; --place) {
    next_ranges[place] = next_ranges[place - 1];
  }
  next_ranges[place] = range;
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

// Scans exclude each other: with_objects sees to that.
void scan_in_lock(uint64_t adds, uint64_t subs, void* argument) {
  auto* result = static_cast<ScanResult*>(argument);
  if (adds != kObjectsUncounted && get(modules.live_count) != 0 &&
      adds == modules.adds.load(std::memory_order_relaxed) &&
      subs == modules.subs.load(std::memory_order_relaxed)) {
    return;
  }
  modules.next_count = 0;
  for_each_object(note_object, nullptr);
  mark_unloaded();
  publish_live();
  modules.adds.store(adds, std::memory_order_relaxed);
  modules.subs.store(subs, std::memory_order_relaxed);
  modules.changes.fetch_add(1, std::memory_order_release);
  result->changed = true;
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
  (void)read_executable_path(executable_path, sizeof executable_path);
  modules_scan();
  return true;
}

bool modules_scan() {
  ScanResult result;
  with_objects(scan_in_lock, &result);
  if (result.changed) change_state(0, 0);
  return result.changed;
}

bool module_find(uint64_t address, ModuleRange& range) {
  if (objects_changed()) (void)modules_scan();
  if (look_up(address, range)) return true;
  // The drain thread may have been in the middle of its scan: then ours waits for that one, finds
  // no change itself, and the object is known all the same.
  (void)modules_scan();
  return look_up(address, range);
}

bool module_find_known(uint64_t address, ModuleRange& range) {
  return live_ranges != nullptr && look_up(address, range);
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
