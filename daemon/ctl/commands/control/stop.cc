// collectctl stop
#include "daemon/ctl/command_line/shared_options.h"
#include "daemon/ctl/commands/commands.h"
#include "daemon/ctl/control/commands.h"

namespace collect::ctl {

void add_stop(const CommandGroup& group) {
  const Command command = group.add("stop", "Stop recordings and seal their files");
  const auto session = std::make_shared<std::string>();
  command.collector();
  command.json();
  command.positional("SESSION", *session, "Session or agent (default: every session that records)");
  command.run([session](const Invocation& invocation) {
    return stop_session(online(invocation), *session);
  });
}

}  // namespace collect::ctl
