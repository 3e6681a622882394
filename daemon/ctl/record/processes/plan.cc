#include "daemon/ctl/record/processes/plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "daemon/ctl/record/processes/plan_coverage.h"
#include "daemon/ctl/terminal/json.h"
#include "daemon/ctl/terminal/text_out.h"
#include "daemon/patch/plan_maker.h"
#include "formats/core/text/figures.h"
#include "formats/patch/plan_view.h"

namespace collect::ctl {
namespace {

using patch::PlanFunction;
using patch::PlanView;
using patch::Refusal;

template <class Visit>
void for_each_refused(const PlanView& plan, Visit visit) {
  for (uint32_t i = 0; i < plan.header().function_count; ++i) {
    const PlanFunction function = plan.function(i);
    if (function.refusal != static_cast<uint32_t>(Refusal::kNone)) visit(function);
  }
}

Json document_of(const std::string& path, const PlanView& plan, const PlanCoverage& coverage) {
  Json document = json_document();
  document["path"] = path;
  add_text(document, "build_id", build_id_text(plan));
  document["functions"] = coverage.functions;
  document["recorded"] = coverage.recorded;
  document["bytes"] = coverage.bytes;
  document["recorded_bytes"] = coverage.recorded_bytes;
  document["jumps"] = plan.header().site_count;
  document["stub_bytes"] = plan.header().region_bytes;
  Json reasons = Json::array();
  for (const auto& [count, reason] : coverage.reasons()) {
    reasons.push_back({{"reason", patch::refusal_text(reason)}, {"functions", count}});
  }
  document["reasons"] = std::move(reasons);
  Json left_out = Json::array();
  for_each_refused(plan, [&left_out](const PlanFunction& function) {
    left_out.push_back({{"address", function.address},
                        {"bytes", function.bytes},
                        {"reason", patch::refusal_text(static_cast<Refusal>(function.refusal))}});
  });
  document["left_out"] = std::move(left_out);
  return document;
}

void print_text(const PlanOptions& options, const PlanView& plan, const PlanCoverage& coverage,
                TextOut& out) {
  out.printable(options.path);
  out.put(": ");
  out.put(fmt::format("{} of {} can be recorded ({}), {} of their code\n",
                      with_thousands(coverage.recorded), counted(coverage.functions, "function"),
                      percent_text(coverage.recorded, coverage.functions),
                      percent_text(coverage.recorded_bytes, coverage.bytes)));
  out.put(fmt::format("  {} to {} of code\n", counted(plan.header().site_count, "jump"),
                      short_bytes(plan.header().region_bytes)));
  for (const auto& [count, reason] : coverage.reasons()) {
    const std::string number = with_thousands(count);
    out.repeat(' ', 8 - std::min<size_t>(number.size(), 8));
    out.put(fmt::format("{}  {}\n", number, patch::refusal_text(reason)));
  }
  if (!options.functions) return;
  for_each_refused(plan, [&out](const PlanFunction& function) {
    out.put("  ");
    out.hex(function.address);
    out.put(fmt::format("  {}  {}\n", counted(function.bytes, "byte"),
                        patch::refusal_text(static_cast<Refusal>(function.refusal))));
  });
}

}  // namespace

std::string percent_text(uint64_t part, uint64_t whole) {
  char text[16];
  const double value =
      whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  std::snprintf(text, sizeof text, "%.1f %%", value);
  return text;
}

int plan(const PlanOptions& options, std::ostream& out, std::ostream& err) {
  const Answer answer{options.json, out, err};
  std::error_code error;
  const auto path = std::filesystem::absolute(options.path, error);
  const auto made = patch::plan_of_file(path.string());
  if (!made.ok()) {
    return answer.refuse_briefly(
        {made.code(), fmt::format("{}: {}", options.path, made.error().message)},
        code_without_plan(made.error()));
  }
  PlanView view;
  (void)view.parse(*made);  // plan_of_file() has
  const PlanCoverage coverage(view);
  TextOut text(out);
  if (options.json) {
    text.put(json_line(document_of(options.path, view, coverage)));
  } else {
    print_text(options, view, coverage, text);
  }
  return coverage.recorded == 0 ? kExitNothingRecorded : 0;
}

}  // namespace collect::ctl
