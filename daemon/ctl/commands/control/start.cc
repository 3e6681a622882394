// collectctl start
#include "daemon/ctl/command_line/shared_options.h"
#include "daemon/ctl/commands/commands.h"
#include "daemon/ctl/control/commands.h"

namespace collect::ctl {

void add_start(const CommandGroup& group) {
  const Command command = group.add("start", "Start a recording");
  const auto start = std::make_shared<StartOptions>();
  command.collector();
  command.json();
  command.positional("AGENT", start->target, "Which one (default: every idle agent)");
  command.option("--only", "FUNCTION", start->only, kFunctionHelp);
  command.option("--except", "FUNCTION", start->except, kExceptHelp);
  command.flag("--detail", start->detail, "Record detail from the first event on");
  command.duration("--duration", start->duration,
                   "Stop automatically after this time, for example 30s");
  command.run(
      [start](const Invocation& invocation) { return start_session(online(invocation), *start); });
}

}  // namespace collect::ctl
