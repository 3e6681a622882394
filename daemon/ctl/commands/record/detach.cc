// collectctl detach
#include <iostream>

#include "daemon/ctl/command_line/shared_options.h"
#include "daemon/ctl/commands/commands.h"
#include "daemon/ctl/control/commands.h"
#include "daemon/ctl/record/processes/attach_process.h"

namespace collect::ctl {

void add_detach(const CommandGroup& group) {
  const Command command =
      group.add("detach", "Seal an agent's session and release the agent, or let go of a process");
  const auto name = std::make_shared<std::string>();
  command.collector();
  command.json();
  command
      .positional("AGENT", *name,
                  "Name, as collectctl agents lists it, or the number of a process that attach "
                  "recorded")
      .required();
  command.run([name](const Invocation& invocation) {
    ProcessOptions process;
    process.pid = process_in(*name);
    process.json = invocation.json;
    if (process.pid == 0 || !has_agent(process.pid)) {
      return detach_agent(online(invocation), *name);
    }
    // Numbers name the collector's agents, too, and these come first.
    return detach_agent(online(invocation), *name,
                        [&process] { return detach_process(process, std::cout, std::cerr); });
  });
}

}  // namespace collect::ctl
