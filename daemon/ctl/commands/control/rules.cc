// collectctl rules
#include "daemon/ctl/command_line/shared_options.h"
#include "daemon/ctl/commands/commands.h"
#include "daemon/ctl/control/commands.h"

namespace collect::ctl {

void add_rules(const CommandGroup& group) {
  const Command command =
      group.add("rules", "Show, set or remove what agents that connect later are to do");
  struct Options {
    std::string file;
    bool clear = false;
  };
  const auto options = std::make_shared<Options>();
  command.collector();
  command.json();
  const Argument set = command.option(
      "--set", "FILE", &options->file,
      "File with the new rules, in the form in which they are shown; -: standard input");
  (void)command.flag("--clear", options->clear, "Remove the rules").excludes(set);
  command.footer(
      "The first rule that matches an agent applies. Rules survive a restart of the collector.\n"
      "Example: echo '{\"rules\": [{\"target\": {\"process_name\": \"render*\"}, \"action\":\n"
      "         \"record\", \"duration_s\": 60}]}' | collectctl rules --set -");
  command.run([options](const Invocation& invocation) {
    const Online to = online(invocation);
    if (options->clear) return clear_rules(to);
    return options->file.empty() ? show_rules(to) : set_rules(to, options->file);
  });
}

}  // namespace collect::ctl
