// collectctl watch
#include "daemon/ctl/command_line/shared_options.h"
#include "daemon/ctl/commands/commands.h"
#include "daemon/ctl/control/commands.h"

namespace collect::ctl {

void add_watch(const CommandGroup& group) {
  const Command command = group.add("watch", "Follow a session until it is sealed");
  const auto options = std::make_shared<WatchOptions>();
  command.collector();
  command.json();
  command.positional("SESSION", options->session, "Which one (default: the newest)");
  command.duration("--interval", options->interval, "Time between two updates (default 1s)");
  const Argument agents =
      command.flag("--agents", options->agents, "Follow the agents instead of a session");
  (void)command
      .option("--filter", "FILTER", &options->filter, "Process name, pid, device id or tag")
      .needs(agents);
  command.footer("On a terminal, one line is updated in place; otherwise every update is a line.");
  command.run(
      [options](const Invocation& invocation) { return watch(online(invocation), *options); });
}

}  // namespace collect::ctl
