// Any bytes as a patch plan: what is accepted stays within its bounds.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "formats/patch/plan_view.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace collect::patch;
  PlanView view;
  if (view.parse({data, size}) != nullptr) return 0;
  const PlanHeader& header = view.header();
  for (uint32_t i = 0; i < header.site_count; ++i) {
    const PlanSite site = view.site(i);
    if (site.bytes < kJumpBytes || site.stub >= header.region_bytes ||
        site.address + uint64_t{site.bytes} > header.image_bytes) {
      std::abort();
    }
  }
  for (uint32_t i = 0; i < header.sled_count; ++i) {
    if (view.sled(i).sled + uint64_t{kSledHeadBytes} > header.region_bytes) std::abort();
  }
  for (uint32_t i = 0; i < header.relative_count; ++i) {
    if (view.relative(i) + uint64_t{4} > header.region_bytes) std::abort();
  }
  for (uint32_t i = 0; i < header.absolute_count; ++i) {
    if (view.absolute(i) + uint64_t{8} > header.region_bytes) std::abort();
  }
  return 0;
}
