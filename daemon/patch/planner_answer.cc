#include "daemon/patch/planner_answer.h"

#include <algorithm>
#include <cstring>

#include "formats/patch/plan_layout.h"

namespace collect::patch {

std::vector<uint8_t> refusal_bytes(const Error& error) {
  std::vector<uint8_t> bytes(kRefusalMagic, kRefusalMagic + sizeof kRefusalMagic);
  bytes.push_back(static_cast<uint8_t>(error.code));
  bytes.insert(bytes.end(), error.message.begin(), error.message.end());
  return bytes;
}

Error refusal_of(Bytes answer) {
  constexpr size_t kText = sizeof kRefusalMagic + 1;
  if (answer.size() < kText || answer.size() > kText + kMaxRefusalText ||
      std::memcmp(answer.data(), kRefusalMagic, sizeof kRefusalMagic) != 0 ||
      answer[sizeof kRefusalMagic] > static_cast<uint8_t>(Code::kCancelled)) {
    return {Code::kDamaged, "the planner's answer is not valid"};
  }
  return {static_cast<Code>(answer[sizeof kRefusalMagic]),
          std::string(answer.begin() + kText, answer.end())};
}

bool is_plan(Bytes answer) {
  return answer.size() >= sizeof kPlanMagic &&
         std::memcmp(answer.data(), kPlanMagic, sizeof kPlanMagic) == 0;
}

}  // namespace collect::patch
