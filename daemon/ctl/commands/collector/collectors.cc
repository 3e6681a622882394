// collectctl collectors
#include <algorithm>
#include <cstdlib>

#include "daemon/ctl/command_line/shared_options.h"
#include "daemon/ctl/commands/commands.h"
#include "daemon/ctl/control/commands.h"
#include "daemon/runtime/running_collectors.h"

namespace collect::ctl {
namespace {

// The one that is named, or each of this user's that runs.
int show_collectors(const Invocation& invocation) {
  const auto running = runtime::running_collectors();
  const bool is_named =
      !invocation.control.address.empty() || std::getenv("COLLECT_CONTROL") != nullptr;
  if (is_named || running.size() < 2) return show_stats(online(invocation));
  int code = kExitOk;
  for (const auto& collector : running) {
    Invocation one = invocation;
    one.control.address = collector.control;
    code = std::max(code, show_stats(online(one)));
  }
  return code;
}

}  // namespace

void add_collectors(const CommandGroup& group) {
  const Command command =
      group.add("collectors", "Show the collectors that run: statistics of each");
  command.collector();
  command.json();
  command.run(show_collectors);
}

}  // namespace collect::ctl
