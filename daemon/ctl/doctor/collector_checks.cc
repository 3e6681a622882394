#include <unistd.h>

#include "daemon/ctl/control/connection/client.h"
#include "daemon/ctl/control/connection/plain_connection.h"
#include "daemon/ctl/doctor/checks.h"
#include "daemon/ctl/record/program/program_paths.h"
#include "formats/core/text/printable.h"

namespace collect::ctl {
namespace {

using Verdict = Check::Verdict;

constexpr const char* kIngestAddress = "127.0.0.1:7710";
constexpr std::chrono::milliseconds kStatsDeadline{2'000};

Check check_program() {
  const Result<std::string> program = find_collectord();
  if (program.ok()) return {"collector", Verdict::kOk, printable(*program), ""};
  return {"collector", Verdict::kProblem, program.error().message,
          "install it beside collectctl, or name it by COLLECT_COLLECTORD"};
}

std::string records_to(const api::Stats& stats) {
  return "a collector answers; it records to " + printable(stats.root());
}

// No one, or a collector, or something else.
Check check_control(const ControlTarget& target, bool is_given, std::string& root,
                    std::string& ingest) {
  const std::string what = "control " + printable(target.address);
  const Result<api::Stats> stats = Client(target).stats(kStatsDeadline);
  if (stats.ok()) {
    if (root.empty()) root = stats->root();
    ingest = stats->ingest_address();
    return {what, Verdict::kOk, records_to(*stats), ""};
  }
  if (is_given)
    return {what, Verdict::kProblem, stats.error().message, "start it, or name another"};
  const Result<int> connected = connect_plain(target.address);
  if (connected.ok()) {
    ::close(*connected);
    return {what, Verdict::kWarning,
            "taken by a program that is no collector of ours: " + stats.error().message,
            "end it, or give collectord another --control and collectctl the same"};
  }
  if (connected.code() == Code::kUnavailable) {
    return {what, Verdict::kOk, "free: collectctl run brings a collector of its own", ""};
  }
  return {what, Verdict::kWarning, connected.error().message,
          "give collectord another --control, and collectctl the same"};
}

Check check_ingest(const std::string& collectors) {
  const std::string what = "agents " + std::string(kIngestAddress);
  if (!collectors.empty() && collectors != kIngestAddress) {
    return {"agents " + printable(collectors), Verdict::kOk, "the collector's", ""};
  }
  const Result<int> connected = connect_plain(kIngestAddress);
  if (connected.ok()) ::close(*connected);
  if (collectors == kIngestAddress) return {what, Verdict::kOk, "the collector's", ""};
  if (connected.ok()) {
    return {what, Verdict::kWarning, "taken by another program",
            "end it, or give collectord another --ingest"};
  }
  if (connected.code() == Code::kUnavailable) return {what, Verdict::kOk, "free", ""};
  return {what, Verdict::kWarning, connected.error().message, "give collectord another --ingest"};
}

}  // namespace

std::vector<Check> check_collector(const ControlTarget& given, std::string& root) {
  ControlTarget target = given;
  const bool is_given = !target.address.empty();
  if (!is_given) target.address = default_control_address();
  std::string ingest;
  std::vector<Check> checks = {check_program()};
  checks.push_back(check_control(target, is_given, root, ingest));
  checks.push_back(check_ingest(ingest));
  return checks;
}

}  // namespace collect::ctl
