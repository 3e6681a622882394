#include "daemon/ctl/control/connection/collector_choice.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "daemon/ctl/control/connection/client.h"
#include "daemon/runtime/running_collectors.h"
#include "formats/core/text/printable.h"

namespace collect::ctl {
namespace {

using runtime::RunningCollector;

// A collector that runs answers at once.
constexpr std::chrono::milliseconds kLookDeadline{1000};
constexpr size_t kMaxNamedCollectors = 8;

std::string text_of(const RunningCollector& collector) {
  return fmt::format("{} ({})", dialable(collector.control), collector.root);
}

bool records(const RunningCollector& collector, ControlTarget target) {
  target.address = dialable(collector.control);
  const auto stats = Client(target).stats(kLookDeadline);
  return stats.ok() && stats->sessions_active() != 0;
}

std::string list_of(const std::vector<RunningCollector>& collectors) {
  std::string list;
  for (size_t i = 0; i < collectors.size() && i < kMaxNamedCollectors; ++i) {
    list += (list.empty() ? "" : ", ") + text_of(collectors[i]);
  }
  const size_t more = collectors.size() - std::min(collectors.size(), kMaxNamedCollectors);
  return more == 0 ? list : fmt::format("{} and {} more", list, more);
}

}  // namespace

void choose_collector(ControlTarget& target, std::ostream& err) {
  if (!target.address.empty()) return;
  if (const char* variable = std::getenv("COLLECT_CONTROL"); variable != nullptr) {
    target.address = variable;
    return;
  }
  const std::vector<RunningCollector> running = runtime::running_collectors();
  if (running.size() <= 1) {
    target.address =
        running.empty() ? default_control_address() : dialable(running.front().control);
    return;
  }
  std::vector<RunningCollector> recording;
  for (const RunningCollector& collector : running) {
    if (records(collector, target)) recording.push_back(collector);
  }
  if (recording.size() == 1) {
    target.address = dialable(recording.front().control);
    err << "collectctl: of " << running.size()
        << " collectors the one that records: " << printable(text_of(recording.front())) << "\n";
    return;
  }
  target.unresolved = fmt::format(
      "several collectors of yours {}: {}; choose one with --control ADDRESS",
      recording.empty() ? "run" : "record", list_of(recording.empty() ? running : recording));
}

}  // namespace collect::ctl
