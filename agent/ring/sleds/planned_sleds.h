// The sleds of a module that was not prepared: they are in stubs, near it, which a patch plan
// describes (formats/patch/plan_layout.h). Their tails are whole from the start. DYNAMIC.md.
#pragma once

#include <cstdint>

#include "agent/ring/sleds/compiled_sleds.h"
#include "formats/patch/plan_view.h"

namespace collect::agent {

class PlannedSleds {
 public:
#if defined(__x86_64__)
  struct Code {
    using Head = uint16_t;
    static constexpr uint32_t kBytes = patch::kSledHeadBytes;
    static constexpr Head idle_head(SledKind) { return patch::kSledIdleHead; }
    static bool is_idle(const uint8_t* sled, SledKind) {
      return sled[0] == (patch::kSledIdleHead & 0xFF);
    }
  };
#else
  struct Code {
    using Head = uint32_t;
    static constexpr uint32_t kBytes = patch::kArm64SledBytes;
    static constexpr Head idle_head(SledKind) { return patch::kArm64SledIdleHead; }
    static bool is_idle(const uint8_t* sled, SledKind) {
      return load_le<uint32_t>(sled) == patch::kArm64SledIdleHead;
    }
  };
#endif

  PlannedSleds() = default;
  // `plan` has been checked and its stubs are at `region`; its bytes stay.
  PlannedSleds(const patch::PlanView& plan, uint64_t base, uint64_t region)
      : plan_(plan), base_(base), region_(region) {
    for (uint32_t i = 0; i < plan.header().sled_count; ++i) {
      if (plan.sled(i).use == static_cast<uint32_t>(patch::SledUse::kEnter)) ++functions_;
    }
  }

  uint32_t functions() const { return functions_; }
  uint64_t address() const {
    return base_ + (plan_.header().site_count != 0 ? plan_.site(0).address : 0);
  }

  template <class Visit>
  void for_each(Visit visit) const {
    for (uint32_t i = 0; i < plan_.header().sled_count; ++i) {
      const patch::PlanSled one = plan_.sled(i);
      visit(
          Sled{region_ + one.sled, base_ + one.function, static_cast<SledKind>(one.use), one.body});
    }
  }
  void write_tail(const Sled&) const {}
  static constexpr Code::Head traced_head([[maybe_unused]] const Sled& sled) {
#if defined(__x86_64__)
    return patch::sled_traced_head(sled.body);
#else
    return patch::kArm64SledTracedHead;
#endif
  }

 private:
  patch::PlanView plan_;
  uint64_t base_ = 0;
  uint64_t region_ = 0;
  uint32_t functions_ = 0;
};

}  // namespace collect::agent
