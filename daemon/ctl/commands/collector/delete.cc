// collectctl delete
#include "daemon/ctl/command_line/shared_options.h"
#include "daemon/ctl/commands/commands.h"
#include "daemon/ctl/control/download.h"

namespace collect::ctl {

void add_delete(const CommandGroup& group) {
  const Command command = group.add("delete", "Remove a sealed session from the collector");
  const auto session = std::make_shared<std::string>();
  command.collector();
  command.json();
  command.positional("SESSION", *session, "Which one; there is no default").required();
  command.run([session](const Invocation& invocation) {
    return delete_session(online(invocation), *session);
  });
}

}  // namespace collect::ctl
