// Totals of each module, which is what the upper half of a function id names, as a sink of
// ThreadCalls. Used on one thread; add() puts the results of several together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "formats/calls/call.h"
#include "formats/calls/function_slots.h"
#include "formats/calls/group_times.h"
#include "formats/calls/nesting.h"

namespace collect::calls {

// The total of a module is the time in which at least one call of its functions was open.
class ModuleTotals : public CallSink {
 public:
  static constexpr size_t kMaxModules = 65536;
  static constexpr uint32_t kOther = UINT32_MAX;  // every module beyond the limit

  struct Module {
    uint32_t module_id = 0;
    GroupTimes times;
  };

  // `slots` outlives it.
  explicit ModuleTotals(const FunctionSlots& slots) : slots_(slots) {}

  void on_call_begin(const Call& call) {
    const size_t module = module_of(call.slot);
    ++modules_[module].times.calls;
    nesting_.begin(static_cast<uint32_t>(module), call.certain_from);
  }
  void on_call_end(const EndedCall& call) {
    const size_t module = module_of(call.slot);
    modules_[module].times.self_ns += call.self_ns;
    const Nesting::Ended ended = nesting_.end(call.total_ns, call.reason == EndReason::kCutByGap);
    modules_[module].times.total_ns += ended.added_ns;
    const WaitedTimes waited = waits_.end(call.depth);
    modules_[module].times.waited.add({ended.is_outermost ? waited.total_ns : 0, waited.self_ns});
  }
  void on_wait(uint64_t ns, size_t depth) { waits_.wait(ns, depth); }

  const std::vector<Module>& modules() const { return modules_; }
  void add(const ModuleTotals& other);

 private:
  static constexpr uint32_t kUnknown = UINT32_MAX;
  size_t module_of(uint32_t slot) {
    if (slot >= module_of_slot_.size()) module_of_slot_.resize(slot + 1, kUnknown);
    uint32_t& module = module_of_slot_[slot];
    if (module == kUnknown) {
      module = find_or_add(static_cast<uint32_t>(slots_.function_of(slot) >> 32));
    }
    return module;
  }
  uint32_t find_or_add(uint32_t module_id);

  const FunctionSlots& slots_;
  std::vector<Module> modules_;
  Nesting nesting_;  // by position in modules_
  WaitStack waits_;
  std::unordered_map<uint32_t, uint32_t> positions_;
  std::vector<uint32_t> module_of_slot_;
};

}  // namespace collect::calls
