// Any bytes as a module: an error, or a plan that an agent reads.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "daemon/patch/planner/planner.h"
#include "formats/patch/plan_view.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto plan = collect::patch::make_plan({data, size});
  if (!plan.ok()) return 0;
  collect::patch::PlanView view;
  if (view.parse(*plan) != nullptr) std::abort();
  const bool is_arm64 =
      view.header().processor == static_cast<uint32_t>(collect::patch::Processor::kArm64);
  for (uint32_t i = 0; i < view.header().site_count; ++i) {
    const collect::patch::PlanSite site = view.site(i);
    // What a jump needs is there: five bytes, or one word of arm64.
    if (is_arm64 ? site.bytes != collect::patch::kArm64JumpBytes
                 : site.bytes < collect::patch::kJumpBytes) {
      std::abort();
    }
  }
  return 0;
}
