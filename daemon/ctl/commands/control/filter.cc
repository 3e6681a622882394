// collectctl filter
#include "daemon/ctl/command_line/shared_options.h"
#include "daemon/ctl/commands/commands.h"
#include "daemon/ctl/control/commands.h"

namespace collect::ctl {

void add_filter(const CommandGroup& group) {
  const Command command =
      group.add("filter", "Show, set or remove the choice of functions that are recorded");
  struct Options {
    FilterOptions filter;
    bool set = false;
  };
  const auto options = std::make_shared<Options>();
  FilterOptions& filter = options->filter;
  command.collector();
  command.json();
  command.positional("TARGET", filter.target,
                     "Session or agent (default: everywhere; of what is shown, the newest)");
  const Argument set =
      command.flag("--set", options->set, "Set the filter, in place of the one before");
  (void)command.flag("--clear", filter.clear, "Record every function again").excludes(set);
  (void)command.option("--only", "FUNCTION", filter.only, kFunctionHelp).needs(set);
  (void)command.option("--except", "FUNCTION", filter.except, kExceptHelp).needs(set);
  command.footer(
      "Without --set and --clear: shows the filters that a session has had. A filter holds from\n"
      "now on. Names are looked up in the modules that are loaded now.\n"
      "Example: collectctl filter --set --only 'parse_*' --except parse_char");
  command.run([options](const Invocation& invocation) {
    const Online to = online(invocation);
    const bool shows = !options->set && !options->filter.clear;
    return shows ? show_function_filter(to, options->filter.target)
                 : set_function_filter(to, options->filter);
  });
}

}  // namespace collect::ctl
