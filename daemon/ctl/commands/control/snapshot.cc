// collectctl snapshot
#include "daemon/ctl/command_line/shared_options.h"
#include "daemon/ctl/commands/commands.h"
#include "daemon/ctl/control/session_conversion.h"

namespace collect::ctl {

void add_snapshot(const CommandGroup& group) {
  const Command command = group.add("snapshot", "Make a sealed copy of what a recording holds now");
  const auto session = std::make_shared<std::string>();
  command.collector();
  command.json();
  command.positional("SESSION", *session, "Which one (default: the newest that records)");
  command.footer(
      "The copy is stored beside the session, which continues: session_…_snap1.\n"
      "Exit code 1: it failed, or the agent could not ship everything; a message says which.");
  command.run([session](const Invocation& invocation) {
    return snapshot_session(online(invocation), *session);
  });
}

}  // namespace collect::ctl
