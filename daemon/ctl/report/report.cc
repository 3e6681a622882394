#include "daemon/ctl/report/report.h"

#include <algorithm>
#include <ostream>

#include "daemon/ctl/report/report_diff.h"
#include "daemon/ctl/report/report_graph.h"
#include "daemon/ctl/report/report_locks.h"
#include "daemon/ctl/report/report_profile.h"
#include "daemon/ctl/report/report_samples.h"
#include "daemon/ctl/report/report_text.h"

namespace collect::ctl {
namespace {

// Why switches.bin, which has waits for locks and samples, cannot be read; null: it can.
const storage::ManifestProblem* problem_of_switches(const ReportedCapture& capture) {
  const auto& problems = capture.manifest().problems;
  const auto found = std::ranges::find(problems, read::SessionManifest::kSwitchesPlace,
                                       &storage::ManifestProblem::place);
  return found == problems.end() ? nullptr : &*found;
}

}  // namespace

int report(const ReportOptions& options, std::ostream& out, std::ostream& err) {
  const Answer answer{options.json, out, err};
  if (!options.graph.empty() && (!options.other.empty() || options.by != ReportBy::kFunction)) {
    return answer.refuse_briefly(
        {Code::kInvalidArgument, "--graph is one function of one capture: without --by and --diff"},
        2);
  }
  const bool is_of_functions = options.by == ReportBy::kFunction && !options.wall;
  const int instead = int{options.waits} + int{options.locks} + int{options.samples};
  if (instead > 1 ||
      (instead == 1 && (!options.other.empty() || !options.graph.empty() || !is_of_functions))) {
    return answer.refuse_briefly({Code::kInvalidArgument,
                                  "--waits, --locks or --samples is of one capture: without --by, "
                                  "--graph, --diff and --wall"},
                                 2);
  }
  ReportedCapture capture;
  if (const int code = capture.open(options.path, options, answer); code != 0) return code;
  int code = capture.has_unreadable_threads() ? 1 : 0;
  TextOut text(out);
  if (!options.graph.empty()) {
    return std::max(code, print_report_graph(text, capture, options, answer));
  }
  if (options.waits) return std::max(code, print_report_waits(text, capture, options, answer));
  if (const auto* problem = problem_of_switches(capture);
      problem != nullptr && (options.locks || options.samples)) {
    return answer.refuse_briefly({Code::kDamaged, problem->sentence}, 1);
  }
  if (options.locks) return std::max(code, print_report_locks(text, capture, options));
  if (options.samples) {
    return std::max(code, print_report_samples(text, capture, options, answer));
  }
  ReportOptions shown = options;
  shown.wall |= !options.other.empty();
  const ReportProfile profile = profile_of(capture, shown, err);
  if (options.other.empty()) {
    if (options.json) {
      print_report_json(text, capture, profile, options);
    } else {
      print_report_text(text, capture, profile, options);
    }
    return code;
  }
  ReportedCapture other;
  if (const int failed = other.open(options.other, options, answer); failed != 0) return failed;
  if (other.has_unreadable_threads()) code = 1;
  const ReportProfile compared = profile_of(other, shown, err);
  print_report_diff(text, capture, profile, other, compared, options);
  return code;
}

}  // namespace collect::ctl
