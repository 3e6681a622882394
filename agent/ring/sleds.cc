#include "agent/ring/sleds.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "agent/ring/function_filter.h"
#include "agent/ring/modules.h"
#include "agent/ring/sled_code.h"
#include "agent/ring/stream.h"
#include "agent/ring/writable_text.h"
#include "agent/shims/xray_module.h"
#include "agent/text.h"

namespace collect::agent {
namespace {

#if defined(__x86_64__)
using Code = x86_64::SledCode;
#else
using Code = aarch64::SledCode;
#endif

struct MapEntry {    // xray_instr_map, version 2
  int64_t sled;      //  0  relative to this field
  int64_t function;  //  8  relative to this field
  uint8_t kind;      // 16
  uint8_t always;    // 17
  uint8_t version;   // 18
  uint8_t zero[13];  // 19
};
static_assert(sizeof(MapEntry) == 32 && offsetof(MapEntry, kind) == 16);
constexpr uint8_t kMapVersion = 2;
constexpr uint8_t kEnterWithArgument = 3;

struct Module {
  collect_xray_module* told = nullptr;  // null: a free place
  // Of the executable segment that the trampolines, and so the sleds, lie in.
  uint64_t text_begin = 0;
  uint64_t text_end = 0;
  uint32_t functions = 0;
  uint32_t patched = 0;
  char path[kMaxModulePath] = {};
};

// Guarded by `lock`.
Module modules[kMaxSledModules];
struct Goal {
  bool in = false;
  uint32_t generation = 0;    // of the function filter: which functions
  bool keeps_others = false;  // those that are in and that it does not take stay
};
Goal goal;
bool can_sync_cores = false;
bool asked_to_sync_cores = false;

std::atomic<uint32_t> lock{0};
std::atomic<const char*> problem{nullptr};

class SledLock {
 public:
  SledLock() { take(); }
  ~SledLock() { give(); }
  SledLock(const SledLock&) = delete;
  SledLock& operator=(const SledLock&) = delete;

  static void take() {
    while (lock.exchange(1, std::memory_order_acquire) != 0) sched_yield();
  }
  static void give() { lock.store(0, std::memory_order_release); }
};

struct Sled {
  uint64_t address;
  uint64_t function;
  SledKind kind;
};

const MapEntry* map_begin(const Module& module) {
  return static_cast<const MapEntry*>(module.told->map_begin);
}
const MapEntry* map_end(const Module& module) {
  return static_cast<const MapEntry*>(module.told->map_end);
}

// False: not one that is patched.
bool read_entry(const Module& module, const MapEntry& entry, Sled& sled) {
  if (entry.version != kMapVersion) return false;
  if (entry.kind > kEnterWithArgument) return false;  // custom events
  sled.kind =
      entry.kind == kEnterWithArgument ? SledKind::kEnter : static_cast<SledKind>(entry.kind);
  sled.address = reinterpret_cast<uint64_t>(&entry.sled) + static_cast<uint64_t>(entry.sled);
  sled.function =
      reinterpret_cast<uint64_t>(&entry.function) + static_cast<uint64_t>(entry.function);
  if (sled.address < module.text_begin || sled.address >= module.text_end ||
      module.text_end - sled.address < Code::kBytes + Code::kLookAhead ||
      sled.function < module.text_begin || sled.function >= module.text_end ||
      sled.address % sizeof(Code::Head) != 0) {
    return false;
  }
  sled.kind = Code::kind_of(reinterpret_cast<const uint8_t*>(sled.address), sled.kind);
  return true;
}

bool encode(const Module& module, const Sled& sled, uint8_t (&code)[Code::kBytes]) {
  const void* const trampolines[] = {module.told->enter, module.told->exit, module.told->tail};
  return Code::encode(
      sled.kind, sled.address,
      static_cast<int64_t>(sled.function - reinterpret_cast<uint64_t>(module.told->anchor)),
      reinterpret_cast<uint64_t>(trampolines[static_cast<uint8_t>(sled.kind)]), code);
}

// What is neither ours nor the compiler's is left alone.
bool is_known_code(const Sled& sled, const uint8_t (&code)[Code::kBytes]) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(sled.address);
  return Code::is_idle(bytes, sled.kind) || memcmp(bytes, code, Code::kBytes) == 0;
}

bool is_patched(const Sled& sled) {
  return !Code::is_idle(reinterpret_cast<const uint8_t*>(sled.address), sled.kind);
}

void report(const Module& module, const char* what, const char* why = "") {
  static char sentences[4][kMaxModulePath + 192];
  static uint32_t next = 0;
  char* const sentence = sentences[next++ % 4];
  Text(sentence, sizeof sentences[0]).add("XRay: ").add(module.path).add(": ").add(what).add(why);
  problem.store(sentence, std::memory_order_release);
}

struct Search {
  Module& module;
  bool found = false;
  bool map_is_inside = false;
};

int find_text(dl_phdr_info* info, size_t, void* argument) {
  auto& search = *static_cast<Search*>(argument);
  const collect_xray_module& told = *search.module.told;
  const auto code = reinterpret_cast<uint64_t>(told.enter);
  const auto begin = reinterpret_cast<uint64_t>(told.map_begin);
  const auto end = reinterpret_cast<uint64_t>(told.map_end);
  bool map_is_inside = false;
  for (size_t i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    const uint64_t from = info->dlpi_addr + segment.p_vaddr;
    const uint64_t to = from + segment.p_filesz;
    if (begin >= from && end <= to) map_is_inside = true;
    if ((segment.p_flags & PF_X) == 0 || code < from || code >= to) continue;
    search.found = true;
    search.module.text_begin = from;
    search.module.text_end = to;
  }
  if (!search.found) return 0;
  search.map_is_inside = map_is_inside;
  const char* name = info->dlpi_name;
  if (name == nullptr || name[0] == '\0') name = "the executable";
  Text(search.module.path, sizeof search.module.path).add(name);
  return 1;
}

// Fills `module` and looks at every entry once. What is wrong with it, or null; functions is 0 when
// nothing of it can be traced.
const char* inspect(Module& module) {
  const collect_xray_module& told = *module.told;
  Text(module.path, sizeof module.path).add("a module");
  Search search{module};
  (void)dl_iterate_phdr(find_text, &search);
  const auto bytes =
      reinterpret_cast<uint64_t>(told.map_end) - reinterpret_cast<uint64_t>(told.map_begin);
  if (told.map_begin == nullptr || bytes == 0) {
    return "has no xray_instr_map: was it built with -fxray-instrument?";
  }
  if (!search.found || !search.map_is_inside || bytes % sizeof(MapEntry) != 0) {
    return "its xray_instr_map is damaged; it is not traced";
  }
  uint64_t odd = 0;
  uint64_t other_version = 0;
  for (const MapEntry* entry = map_begin(module); entry != map_end(module); ++entry) {
    Sled sled{};
    uint8_t code[Code::kBytes];
    if (entry->version != kMapVersion) {
      ++other_version;
    } else if (entry->kind > kEnterWithArgument) {
      continue;
    } else if (!read_entry(module, *entry, sled) || !encode(module, sled, code) ||
               !is_known_code(sled, code)) {
      ++odd;
    } else if (sled.kind == SledKind::kEnter) {
      ++module.functions;
    }
  }
  if (other_version != 0) {
    return "has entries in its xray_instr_map of a version other than 2; those are not traced";
  }
  if (odd == 0) return nullptr;
  return "has sleds that are out of reach or not as a compiler writes them; those are not traced";
}

bool all_cores_fetch_anew() {
  if (!asked_to_sync_cores) {
    asked_to_sync_cores = true;
    can_sync_cores =
        syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0) == 0;
  }
  return can_sync_cores &&
         syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0) == 0;
}

void forget_cached(uint64_t address, uint64_t bytes) {
  __builtin___clear_cache(reinterpret_cast<char*>(address),
                          reinterpret_cast<char*>(address + bytes));
}

// Code is data to nobody but these two: ThreadSanitizer keeps no notes of it, and can't.
#define COLLECT_WRITES_CODE __attribute__((no_sanitize("thread")))

COLLECT_WRITES_CODE void write_tail(const Sled& sled, const uint8_t (&code)[Code::kBytes]) {
  auto* bytes = reinterpret_cast<volatile uint8_t*>(sled.address);
  for (size_t at = sizeof(Code::Head); at < Code::kBytes; ++at) {
    if (bytes[at] != code[at]) bytes[at] = code[at];
  }
  forget_cached(sled.address, Code::kBytes);
}

COLLECT_WRITES_CODE void write_head(const Sled& sled, Code::Head head) {
  __atomic_store_n(reinterpret_cast<Code::Head*>(sled.address), head, __ATOMIC_RELEASE);
  forget_cached(sled.address, sizeof head);
}

// What is wanted of the sled.
bool goes_in(const ModuleRange& range, const Sled& sled) {
  if (!goal.in) return false;
  if (goal.keeps_others && is_patched(sled)) return true;

  const uint64_t id = range.module_id == kUnknownModule
                          ? uint64_t{kUnknownModule} << 32 | (sled.function & 0xFFFFFFFFu)
                          : uint64_t{range.module_id} << 32 | (sled.function - range.base);
  return function_filter_takes(goal.generation, id);
}

template <class Visit>
void for_each_sled(const Module& module, Visit visit) {
  for (const MapEntry* entry = map_begin(module); entry != map_end(module); ++entry) {
    Sled sled{};
    uint8_t code[Code::kBytes];
    if (!read_entry(module, *entry, sled) || !encode(module, sled, code)) continue;
    if (is_known_code(sled, code)) visit(sled, code);
  }
}

// Brings every sled into the state that is wanted of it.
void settle(Module& module) {
  ModuleRange range;
  if (goal.in) (void)module_find_known(reinterpret_cast<uint64_t>(module.told->enter), range);
  uint64_t begin = UINT64_MAX;
  uint64_t end = 0;
  uint32_t patched = 0;
  for_each_sled(module, [&](const Sled& sled, const uint8_t(&)[Code::kBytes]) {
    const bool in = goes_in(range, sled);
    if (in && sled.kind == SledKind::kEnter) ++patched;
    if (in == is_patched(sled)) return;
    if (sled.address < begin) begin = sled.address;
    if (sled.address + Code::kBytes > end) end = sled.address + Code::kBytes;
  });
  if (end == 0) {
    module.patched = patched;
    return;
  }
  const WritableText text(begin, end);
  if (text.error() != 0) {
    report(module, "the system does not let its code be changed: ", errno_text(text.error()));
    return;
  }
  module.patched = patched;
  for_each_sled(module, [&](const Sled& sled, const uint8_t(&code)[Code::kBytes]) {
    if (!is_patched(sled) && goes_in(range, sled)) write_tail(sled, code);
  });
  (void)all_cores_fetch_anew();
  for_each_sled(module, [&](const Sled& sled, const uint8_t(&)[Code::kBytes]) {
    const bool in = goes_in(range, sled);
    if (in != is_patched(sled))
      write_head(sled, in ? Code::kTracedHead : Code::idle_head(sled.kind));
  });
  (void)all_cores_fetch_anew();
}

void settle_all(const Goal& wanted) {
  const int saved_errno = errno;
  const SledLock locked;
  goal = wanted;
  for (Module& module : modules) {
    if (module.told != nullptr) settle(module);
  }
  errno = saved_errno;
}

}  // namespace

void sleds_register(collect_xray_module& told, const SledHandler (&handlers)[3]) {
  if (told.abi != COLLECT_XRAY_ABI || told.struct_bytes < sizeof told || told.agent != nullptr) {
    return;
  }
  const int saved_errno = errno;
  // Both of these take the loader's lock, so ours comes after.
  if (recorder_ready()) (void)modules_scan();
  Module inspected;
  inspected.told = &told;
  const char* finding = inspect(inspected);
  const SledLock locked;
  Module* place = nullptr;
  for (Module& module : modules) {
    if (module.told == nullptr && place == nullptr) place = &module;
  }
  if (place == nullptr) finding = "is one module too many; it is not traced";
  if (finding != nullptr) report(inspected, finding);
  if (inspected.functions != 0 && place != nullptr) {
    for (size_t i = 0; i < 3; ++i) told.handlers[i] = handlers[i];
    *place = inspected;
    told.agent = place;
    if (goal.in) settle(*place);
  }
  errno = saved_errno;
}

void sleds_unregister(collect_xray_module& told) {
  const SledLock locked;
  auto* const module = static_cast<Module*>(told.agent);
  if (module == nullptr || module->told != &told) return;
  // Its code stays as it is: it may run on for a while, and its handlers are the agent's.
  told.agent = nullptr;
  *module = Module{};
}

void sleds_in() {
  settle_all({true, function_filter_generation(), false});
}
void sleds_let_in(uint32_t generation) {
  settle_all({true, generation, true});
}
void sleds_out() {
  settle_all({});
}

SledCounts sled_counts() {
  const SledLock locked;
  SledCounts sum;
  for (const Module& module : modules) {
    sum.functions += module.functions;
    sum.patched += module.patched;
  }
  return sum;
}

const char* sleds_problem() {
  return problem.load(std::memory_order_acquire);
}

void sleds_before_fork() {
  SledLock::take();
}
void sleds_after_fork() {
  SledLock::give();
}
void sleds_after_fork_in_child() {
  asked_to_sync_cores = false;
  SledLock::give();
}

}  // namespace collect::agent
