#include "agent/ring/sleds/sleds.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "agent/platform/system.h"
#include "agent/ring/function_filter.h"
#include "agent/ring/modules.h"
#include "agent/ring/recorder.h"
#include "agent/ring/sleds/compiled_sleds.h"
#include "agent/ring/sleds/planned_sleds.h"
#include "agent/ring/sleds/sled_writes.h"
#include "agent/ring/sleds/writable_text.h"
#include "agent/ring/sleds/xray_module.h"
#include "agent/text.h"

namespace collect::agent {
namespace {

struct Module {
  bool is_used = false;
  bool is_planned = false;
  CompiledSleds compiled;
  PlannedSleds planned;
  uint32_t patched = 0;
  char path[kMaxModulePath] = {};

  uint32_t functions() const { return is_planned ? planned.functions() : compiled.functions(); }
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

constexpr char kTooMany[] = "is one module too many; it is not traced";

std::atomic<uint32_t> lock{0};
std::atomic<const char*> problem{nullptr};

class SledLock {
 public:
  SledLock() { take(); }
  ~SledLock() { give(); }
  SledLock(const SledLock&) = delete;
  SledLock& operator=(const SledLock&) = delete;

  static void take() {
    while (lock.exchange(1, std::memory_order_acquire) != 0) sys::sched_yield();
  }
  static void give() { lock.store(0, std::memory_order_release); }
};

void report(const char* who, const char* path, const char* what, const char* why) {
  static char sentences[4][kMaxModulePath + 192];
  static uint32_t next = 0;
  char* const sentence = sentences[next++ % 4];
  Text(sentence, sizeof sentences[0]).add(who).add(": ").add(path).add(": ").add(what).add(why);
  problem.store(sentence, std::memory_order_release);
}

void report(const Module& module, const char* what, const char* why = "") {
  report(module.is_planned ? "plan" : "XRay", module.path, what, why);
}

bool all_cores_fetch_anew() {
  if (!asked_to_sync_cores) {
    asked_to_sync_cores = true;
    can_sync_cores =
        sys::call(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0) == 0;
  }
  return can_sync_cores &&
         sys::call(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0) == 0;
}

template <class Code>
bool is_patched(const Sled& sled) {
  return !Code::is_idle(reinterpret_cast<const uint8_t*>(sled.address), sled.kind);
}

template <class Code>
COLLECT_WRITES_CODE void write_head(const Sled& sled, typename Code::Head head) {
  __atomic_store_n(reinterpret_cast<typename Code::Head*>(sled.address), head, __ATOMIC_RELEASE);
  forget_cached(sled.address, sizeof head);
}

// What is wanted of the sled.
template <class Code>
bool goes_in(const ModuleRange& range, const Sled& sled) {
  if (!goal.in) return false;
  if (goal.keeps_others && is_patched<Code>(sled)) return true;

  const uint64_t id = range.module_id == kUnknownModule
                          ? uint64_t{kUnknownModule} << 32 | (sled.function & 0xFFFFFFFFu)
                          : uint64_t{range.module_id} << 32 | (sled.function - range.base);
  return function_filter_takes(goal.generation, id);
}

// Brings every sled into the state that is wanted of it.
template <class Sleds>
void settle(Module& module, const Sleds& sleds) {
  using Code = typename Sleds::Code;
  ModuleRange range;
  if (goal.in) (void)module_find_known(sleds.address(), range);
  uint64_t begin = UINT64_MAX;
  uint64_t end = 0;
  uint32_t patched = 0;
  sleds.for_each([&](const Sled& sled) {
    const bool in = goes_in<Code>(range, sled);
    if (in && sled.kind == SledKind::kEnter) ++patched;
    if (in == is_patched<Code>(sled)) return;
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
  sleds.for_each([&](const Sled& sled) {
    if (!is_patched<Code>(sled) && goes_in<Code>(range, sled)) sleds.write_tail(sled);
  });
  (void)all_cores_fetch_anew();
  sleds.for_each([&](const Sled& sled) {
    const bool in = goes_in<Code>(range, sled);
    if (in != is_patched<Code>(sled)) {
      write_head<Code>(sled, in ? Sleds::traced_head(sled) : Code::idle_head(sled.kind));
    }
  });
  (void)all_cores_fetch_anew();
}

void settle(Module& module) {
  if (module.is_planned) {
    settle(module, module.planned);
  } else {
    settle(module, module.compiled);
  }
}

// Under the lock. Null: one module too many.
Module* take_place(const Module& inspected) {
  for (Module& module : modules) {
    if (module.is_used) continue;
    module = inspected;
    module.is_used = true;
    return &module;
  }
  return nullptr;
}

void settle_all(const Goal& wanted) {
  const int saved_errno = errno;
  const SledLock locked;
  goal = wanted;
  for (Module& module : modules) {
    if (module.is_used) settle(module);
  }
  errno = saved_errno;
}

}  // namespace

void sleds_register(collect_xray_module& registered, const SledHandler (&handlers)[3]) {
  if (registered.abi != COLLECT_XRAY_ABI || registered.struct_bytes < sizeof registered ||
      registered.agent != nullptr) {
    return;
  }
  const int saved_errno = errno;
  // Both of these take the loader's lock, so ours comes after.
  if (recorder_ready()) (void)modules_scan();
  Module inspected;
  inspected.compiled = CompiledSleds(registered);
  const char* const finding = inspected.compiled.inspect(inspected.path, sizeof inspected.path);
  const SledLock locked;
  if (finding != nullptr) report(inspected, finding);
  if (inspected.functions() != 0) {
    Module* const place = take_place(inspected);
    if (place == nullptr) {
      report(inspected, kTooMany);
    } else {
      for (size_t i = 0; i < 3; ++i) registered.handlers[i] = handlers[i];
      registered.agent = place;
      if (goal.in) settle(*place);
    }
  }
  errno = saved_errno;
}

void sleds_unregister(collect_xray_module& registered) {
  const SledLock locked;
  auto* const module = static_cast<Module*>(registered.agent);
  if (module == nullptr || module->compiled.registered() != &registered) return;
  // Its code stays as it is: it may run on for a while, and its handlers are the agent's.
  registered.agent = nullptr;
  *module = Module{};
}

bool sleds_register(const PlannedSleds& planned, const char* path) {
  const SledLock locked;
  Module inspected;
  inspected.is_planned = true;
  inspected.planned = planned;
  Text(inspected.path, sizeof inspected.path).add(path);
  Module* const place = take_place(inspected);
  if (place == nullptr) {
    report(inspected, kTooMany);
    return false;
  }
  if (goal.in) settle(*place);
  return true;
}

void sleds_report(const char* path, const char* what, const char* why) {
  const SledLock locked;
  report("plan", path, what, why);
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
    sum.functions += module.functions();
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
