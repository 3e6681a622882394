#include "daemon/patch/plan_maker.h"

#include <cstring>

#include "daemon/patch/planner_answer.h"
#include "daemon/symbolize/child_program.h"
#include "formats/core/crc32.h"
#include "formats/patch/plan_view.h"

namespace collect::patch {
namespace {

constexpr std::chrono::seconds kPlanDeadline{60};
constexpr uint64_t kMaxAnswerBytes = 512u << 20;

}  // namespace

const char* check_plan(const std::vector<uint8_t>& bytes) {
  PlanView view;
  if (const char* wrong = view.parse(bytes)) return wrong;
  return view.header().crc == crc32c(view.checksummed()) ? nullptr : "its checksum does not match";
}

Result<std::vector<uint8_t>> plan_of_file(const std::string& path) {
  symbolize::ChildBounds bounds;
  bounds.deadline = kPlanDeadline;
  bounds.output_bytes = kMaxAnswerBytes;
  std::vector<uint8_t> answer;
  const Bytes request(reinterpret_cast<const uint8_t*>(path.data()), path.size());
  const auto ending =
      symbolize::run_child({symbolize::own_program("collect-planner")}, request, bounds,
                           [&answer](Bytes bytes) -> Status {
                             answer.insert(answer.end(), bytes.begin(), bytes.end());
                             return {};
                           });
  if (!ending.ok()) return ending.error();
  if (!ending->fault.empty()) return Error{Code::kLimit, "its plan: " + ending->fault};
  if (!is_plan(answer)) return refusal_of(answer);
  if (const char* wrong = check_plan(answer)) {
    return Error{Code::kDamaged, std::string("its plan: ") + wrong};
  }
  return answer;
}

}  // namespace collect::patch
