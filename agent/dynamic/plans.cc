#include "agent/dynamic/plans.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "agent/dynamic/plan_file.h"
#include "agent/dynamic/plan_modules.h"
#include "agent/dynamic/planned_jumps.h"
#include "agent/platform/system.h"
#include "agent/ring/recorder.h"
#include "agent/ring/sleds/code_copy.h"
#include "agent/ring/sleds/planned_sleds.h"
#include "agent/ring/sleds/sled_writes.h"
#include "agent/ring/sleds/sleds.h"
#include "agent/ring/sleds/writable_text.h"
#include "agent/shims/planned_handlers.h"
#include "formats/patch/attach_request.h"

#if defined(MAP_FIXED_NOREPLACE)
#define COLLECT_MAP_THERE MAP_FIXED_NOREPLACE
#else
#define COLLECT_MAP_THERE 0x100000
#endif

extern "C" {
extern const uint8_t collect_planned_begin[] __attribute__((visibility("hidden")));
extern const uint8_t collect_planned_end[] __attribute__((visibility("hidden")));
}

namespace collect::agent {
namespace {

using patch::PlanSite;
using patch::PlanView;

constexpr uint64_t kLeastAbove = 16u << 20;

uint8_t* map_at(uint64_t address, size_t bytes) {
  void* const there = reinterpret_cast<void*>(address);
  void* const memory = sys::mmap(there, bytes, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | COLLECT_MAP_THERE, -1, 0);
  if (memory == there) return static_cast<uint8_t*>(memory);
  if (memory != MAP_FAILED) (void)sys::munmap(memory, bytes);  // an old kernel takes it as a hint
  return nullptr;
}

// Below the module, where no heap grows; else far above it. `code` bytes of the module are to be
// within reach.
uint8_t* map_near(const PlannedModule& module, size_t bytes, uint64_t code) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t begin = module.begin & ~(page - 1);
  const uint64_t size = (bytes + page - 1) & ~(page - 1);
  const uint64_t most = code > size ? code : size;
  const uint64_t reach = most < kPlanReach ? kPlanReach - most : 0;
  for (uint64_t away = size + page; away < reach && away < begin; away += kPlanPlaceStep) {
    if (uint8_t* memory = map_at(begin - away, bytes)) return memory;
  }
  for (uint64_t away = reach & ~(page - 1); away > kLeastAbove; away -= kPlanPlaceStep) {
    if (uint8_t* memory = map_at(begin + away, bytes)) return memory;
  }
  return nullptr;
}

// Null, or what is out of reach.
const char* fill_region(uint8_t* region, const PlannedModule& module, const PlanView& plan) {
  memcpy(region, plan.region().data(), plan.region().size());
  memcpy(region, collect_planned_begin,
         static_cast<size_t>(collect_planned_end - collect_planned_begin));
  const SledHandler* const handlers = planned_handlers();
  const uint64_t words[] = {module.base, reinterpret_cast<uint64_t>(handlers[0]),
                            reinterpret_cast<uint64_t>(handlers[1]),
                            reinterpret_cast<uint64_t>(handlers[2])};
  memcpy(region + patch::kTrampolineWords, words, sizeof words);
  const auto away = static_cast<int64_t>(reinterpret_cast<uint64_t>(region) - module.base);
  for (uint32_t i = 0; i < plan.header().relative_count; ++i) {
    if (!move_distance(region + plan.relative(i), away)) return "its code is out of reach";
  }
  for (uint32_t i = 0; i < plan.header().absolute_count; ++i) {
    uint64_t address;
    memcpy(&address, region + plan.absolute(i), sizeof address);
    address += module.base;
    memcpy(region + plan.absolute(i), &address, sizeof address);
  }
  for (uint32_t i = 0; i < plan.header().site_count; ++i) {
    const PlanSite site = plan.site(i);
    uint8_t jump[kPlanJumpBytes];
    if (!make_jump(module.base + site.address, reinterpret_cast<uint64_t>(region) + site.stub,
                   jump)) {
      return "its code is out of reach";
    }
  }
  return nullptr;
}

COLLECT_WRITES_CODE void write_jumps(uint64_t region, const PlannedModule& module,
                                     const PlanView& plan) {
  for (uint32_t i = 0; i < plan.header().site_count; ++i) {
    const PlanSite site = plan.site(i);
    uint8_t jump[kPlanJumpBytes];
    (void)make_jump(module.base + site.address, region + site.stub, jump);
    memcpy(reinterpret_cast<uint8_t*>(module.base + site.address), jump, sizeof jump);
    forget_cached(module.base + site.address, sizeof jump);
  }
}

// Where the plan's windows in a segment begin and end; `end` is 0 when there are none.
struct Range {
  uint64_t begin = UINT64_MAX;
  uint64_t end = 0;
};

Range windows_in(const PlannedModule& module, const ElfW(Phdr) & segment, const PlanView& plan) {
  Range range;
  if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) return range;
  for (uint32_t i = 0; i < plan.header().site_count; ++i) {
    const PlanSite site = plan.site(i);
    if (site.address < segment.p_vaddr || site.address >= segment.p_vaddr + segment.p_memsz) {
      continue;
    }
    const uint64_t begin = module.base + site.address;
    if (begin < range.begin) range.begin = begin;
    range.end = begin + site.bytes;  // they ascend
  }
  return range;
}

// Makes the code of every segment from `index` on writable, then writes. What is between them
// stays as it is. Null, or why nothing was written.
const char* write_from(size_t index, uint64_t region, const PlannedModule& module,
                       const PlanView& plan) {
  for (; index < module.segment_count; ++index) {
    const Range range = windows_in(module, module.segments[index], plan);
    if (range.end == 0) continue;
    const WritableText text(range.begin, range.end);
    if (text.error() != 0) return "the system does not let its code be changed";
    return write_from(index + 1, region, module, plan);
  }
  write_jumps(region, module, plan);
  return nullptr;
}

void report(const PlannedModule& module, const char* why) {
  sleds_report(module.path, "is not traced: ", why);
}

// The stubs of a plan near their module, ready to be jumped to.
struct Prepared {
  const PlannedModule* module = nullptr;
  PlanView plan;
  PlanFile file;
  uint8_t* region = nullptr;
};

// Null, or why there are none.
const char* prepare(const PlannedModule& module, const PlanView& plan, uint8_t*& region) {
  if (plan.header().site_count == 0) return "it traces nothing";
  const size_t bytes = plan.region().size();
  const PlanSite last = plan.site(plan.header().site_count - 1);
  region = map_near(module, bytes, module.base + last.address + last.bytes - module.begin);
  if (region == nullptr) return "no memory near the module";
  const char* wrong = fill_region(region, module, plan);
  if (wrong == nullptr && sys::mprotect(region, bytes, PROT_READ | PROT_EXEC) != 0) {
    wrong = "the system does not let memory become code";
  }
  if (wrong != nullptr) {
    (void)sys::munmap(region, bytes);
  } else {
    forget_cached(reinterpret_cast<uint64_t>(region), bytes);
  }
  return wrong;
}

// Beginnings of modules whose jumps are written. Of the one thread that applies plans, or of the
// one that attaches.
uint64_t traced[kMaxPlannedModules];
uint32_t traced_count = 0;

bool is_traced(const PlannedModule& module) {
  for (uint32_t i = 0; i < traced_count; ++i) {
    if (traced[i] == module.base) return true;
  }
  return false;
}

// The jumps are written.
void use(const PlannedModule& module, const PlanView& plan, const uint8_t* region) {
  if (traced_count < kMaxPlannedModules) traced[traced_count++] = module.base;
  // One module too many is reported there. Its sleds then stay idle.
  (void)sleds_register(PlannedSleds(plan, module.base, reinterpret_cast<uint64_t>(region)),
                       module.path);
}

// Null, or why nothing was changed.
const char* apply(const PlannedModule& module, const PlanView& plan) {
  uint8_t* region = nullptr;
  const char* wrong = prepare(module, plan, region);
  if (wrong != nullptr) return wrong;
  wrong = write_from(0, reinterpret_cast<uint64_t>(region), module, plan);
  if (wrong != nullptr) {
    (void)sys::munmap(region, plan.region().size());
    return wrong;
  }
  use(module, plan, region);
  return nullptr;
}

// Null: no other thread can be in the code that is changed.
const char* why_not_alone() {
  struct stat status{};
  constexpr uint64_t kOfFolder = 2;  // links that a folder has without one inside
  if (sys::stat("/proc/self/task", &status) != 0 || status.st_nlink <= kOfFolder) {
    return "without /proc no one can say whether the program has other threads";
  }
  return status.st_nlink == kOfFolder + 1 ? nullptr : "the program has other threads already";
}

// Used by the one thread that attaches. By ascending address.
Prepared prepared[kMaxPlannedModules];
uint32_t prepared_count = 0;
patch::AttachJump* jumps = nullptr;
size_t jumps_bytes = 0;

void add_prepared(const Prepared& one) {
  uint32_t at = prepared_count++;
  for (; at > 0 && prepared[at - 1].module->base > one.module->base; --at) {
    prepared[at] = prepared[at - 1];
  }
  prepared[at] = one;
}

void forget_prepared() {
  if (jumps != nullptr) (void)sys::munmap(jumps, jumps_bytes);
  jumps = nullptr;
  prepared_count = 0;
}

patch::AttachJump jump_of(const Prepared& one, uint32_t index) {
  const PlanSite site = one.plan.site(index);
  patch::AttachJump jump{};
  jump.address = one.module->base + site.address;
  jump.bytes = site.bytes;
  memcpy(jump.original, site.original, sizeof jump.original);
  (void)make_jump(jump.address, reinterpret_cast<uint64_t>(one.region) + site.stub, jump.jump);
  return jump;
}

// Null: all jumps of what is prepared are listed.
const char* list_jumps(uint64_t& count) {
  count = 0;
  for (uint32_t i = 0; i < prepared_count; ++i) count += prepared[i].plan.header().site_count;
  jumps_bytes = count * sizeof(patch::AttachJump);
  void* const memory =
      sys::mmap(nullptr, jumps_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return "no memory for the list of jumps";
  jumps = static_cast<patch::AttachJump*>(memory);
  patch::AttachJump* next = jumps;
  for (uint32_t i = 0; i < prepared_count; ++i) {
    for (uint32_t site = 0; site < prepared[i].plan.header().site_count; ++site) {
      *next++ = jump_of(prepared[i], site);
    }
  }
  return nullptr;
}

void drop_one(const Prepared& one) {
  (void)sys::munmap(one.region, one.plan.region().size());
  drop(one.file);
}

#if defined(__aarch64__)

void write_into(CodeCopy& copy, const Range& range, const Prepared& one) {
  for (uint32_t i = 0; i < one.plan.header().site_count; ++i) {
    const PlanSite site = one.plan.site(i);
    const uint64_t address = one.module->base + site.address;
    if (address < range.begin || address >= range.end) continue;
    (void)make_jump(address, reinterpret_cast<uint64_t>(one.region) + site.stub, copy.at(address));
  }
}

// As write_from(), by pages that take the place of those that run. `any`: whether a jump is there.
const char* replace_from(size_t index, const Prepared& one, bool& any) {
  for (; index < one.module->segment_count; ++index) {
    const Range range = windows_in(*one.module, one.module->segments[index], one.plan);
    if (range.end == 0) continue;
    CodeCopy copy(range.begin, range.end);
    if (!copy.is_there()) return "no memory for a copy of its code";
    write_into(copy, range, one);
    if (!copy.make_code()) return "the system does not let its code be changed";
    if (const char* const wrong = replace_from(index + 1, one, any)) return wrong;
    if (!copy.take_place()) return "the system does not let its code be replaced";
    any = true;
  }
  return nullptr;
}

#endif

// The plan of a module, checked. `file.bytes` is null when it has none, or one that can't be used:
// then that is reported, but of a module that is gone. `hold` is null where no one else runs, and
// then that is checked.
PlanFile checked_plan(const char* folder, const PlannedModule& module, HoldModule hold, void* holds,
                      PlanView& plan) {
  const PlanFile file = read_plan(folder, module);
  if (file.bytes == nullptr && file.wrong == nullptr) return file;
  if (hold != nullptr && !hold(holds, module)) {
    if (file.bytes != nullptr) drop(file);
    return {};
  }
  const char* wrong = file.wrong;
  if (wrong == nullptr && hold == nullptr) wrong = why_not_alone();
  if (wrong == nullptr) wrong = plan.parse(Bytes(file.bytes, file.count));
  if (wrong == nullptr) wrong = why_not_of(module, plan);
  if (wrong == nullptr) return file;
  report(module, wrong);
  drop(file);
  return {};
}

}  // namespace

void apply_plans(const char* folder) {
  const int saved_errno = errno;
  list_planned_modules();
  for (uint32_t i = 0; i < planned_modules(); ++i) {
    PlanView plan;
    const PlanFile file = checked_plan(folder, planned_module(i), nullptr, nullptr, plan);
    if (file.bytes == nullptr) continue;
    const char* const wrong = apply(planned_module(i), plan);
    if (wrong == nullptr) continue;  // the plan's bytes stay: its sleds are listed there
    report(planned_module(i), wrong);
    drop(file);
  }
  errno = saved_errno;
}

const char* prepare_plans(const char* folder, HoldModule hold, void* holds, uint64_t* jumps_at,
                          uint64_t* count) {
  *jumps_at = *count = 0;
  if (sys::access(folder, X_OK) != 0)
    return "its user may not read the folder with the plans (TMPDIR)";
  list_planned_modules();
  for (uint32_t i = 0; i < planned_modules(); ++i) {
    if (is_traced(planned_module(i))) continue;
    Prepared one;
    one.module = &planned_module(i);
    one.file = checked_plan(folder, planned_module(i), hold, holds, one.plan);
    if (one.file.bytes == nullptr) continue;
    if (const char* const wrong = prepare(planned_module(i), one.plan, one.region)) {
      report(planned_module(i), wrong);
      drop(one.file);
      continue;
    }
    add_prepared(one);
  }
  if (prepared_count == 0) {
    if (traced_count != 0) return nullptr;
    const char* const why = sleds_problem();
    return why != nullptr ? why : "no module of the process has a plan";
  }
  if (const char* const wrong = list_jumps(*count)) {
    drop_prepared();
    *count = 0;
    return wrong;
  }
  *jumps_at = reinterpret_cast<uint64_t>(jumps);
  return nullptr;
}

const char* write_prepared() {
#if defined(__aarch64__)
  const char* first_wrong = nullptr;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < prepared_count; ++i) {
    bool any = false;
    const char* const wrong = replace_from(0, prepared[i], any);
    if (wrong != nullptr) report(*prepared[i].module, wrong);
    // Once a jump is written the stubs stay, even after an error.
    if (wrong == nullptr || any) {
      prepared[kept++] = prepared[i];
      continue;
    }
    if (first_wrong == nullptr) first_wrong = wrong;
    drop_one(prepared[i]);
  }
  prepared_count = kept;
  if (kept != 0) return nullptr;
  forget_prepared();
  return first_wrong;
#else
  drop_prepared();
  return "on this processor code can be changed only while all threads stand still";
#endif
}

void use_prepared() {
  for (uint32_t i = 0; i < prepared_count; ++i) {
    use(*prepared[i].module, prepared[i].plan, prepared[i].region);
  }
  forget_prepared();
}

void drop_prepared() {
  for (uint32_t i = 0; i < prepared_count; ++i) drop_one(prepared[i]);
  forget_prepared();
}

}  // namespace collect::agent
