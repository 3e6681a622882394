// What a patch plan covers of its file.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "daemon/ctl/terminal/text_out.h"
#include "formats/core/result.h"
#include "formats/patch/plan_view.h"

namespace collect::ctl {

struct PlanCoverage {
  explicit PlanCoverage(const patch::PlanView& plan) {
    for (uint32_t i = 0; i < plan.header().function_count; ++i) {
      const patch::PlanFunction function = plan.function(i);
      ++functions;
      bytes += function.bytes;
      ++by_reason[function.refusal];
      if (function.refusal == static_cast<uint32_t>(patch::Refusal::kNone)) {
        ++recorded;
        recorded_bytes += function.bytes;
      }
    }
  }
  // With how many functions each, the most frequent one first.
  std::vector<std::pair<uint64_t, patch::Refusal>> reasons() const {
    std::vector<std::pair<uint64_t, patch::Refusal>> found;
    for (uint32_t i = 1; i < by_reason.size(); ++i) {
      if (by_reason[i] != 0) found.emplace_back(by_reason[i], static_cast<patch::Refusal>(i));
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    return found;
  }

  uint64_t functions = 0;
  uint64_t recorded = 0;  // can be
  uint64_t bytes = 0;
  uint64_t recorded_bytes = 0;
  std::array<uint64_t, static_cast<size_t>(patch::Refusal::kCount)> by_reason{};
};

inline constexpr int kExitNothingRecorded = 1;
inline constexpr int kExitUnreadable = 2;

// The exit code for a file without a plan.
inline int code_without_plan(const Error& error) {
  const bool is_of_file = error.code == Code::kUnsupported || error.code == Code::kDamaged ||
                          error.code == Code::kAlreadyExists || error.code == Code::kLimit;
  return is_of_file ? kExitNothingRecorded : kExitUnreadable;
}

inline std::string build_id_text(const patch::PlanView& plan) {
  TextBuffer text;
  text.hex_bytes(Bytes(plan.header().build_id).first(plan.header().build_id_bytes));
  return std::string(text.text());
}

// "97.4 %"
std::string percent_text(uint64_t part, uint64_t whole);

}  // namespace collect::ctl
