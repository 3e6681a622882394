// collectctl agents
#include "daemon/ctl/command_line/shared_options.h"
#include "daemon/ctl/commands/commands.h"
#include "daemon/ctl/control/commands.h"

namespace collect::ctl {

void add_agents(const CommandGroup& group) {
  const Command command = group.add("agents", "List the agents that are, or were, connected");
  struct Options {
    std::string word;
    bool threads = false;
  };
  const auto options = std::make_shared<Options>();
  command.collector();
  command.json();
  command.positional("AGENT", options->word,
                     "Name, process name, pid, device id or tag (default: all)");
  command.flag("--threads", options->threads,
               "List the threads that this agent, or the only one, records now");
  command.run([options](const Invocation& invocation) {
    const Online to = online(invocation);
    return options->threads ? list_threads(to, options->word) : list_agents(to, options->word);
  });
}

}  // namespace collect::ctl
