// collectctl annotate
#include "daemon/ctl/command_line/shared_options.h"
#include "daemon/ctl/commands/commands.h"
#include "daemon/ctl/control/commands.h"

namespace collect::ctl {

void add_annotate(const CommandGroup& group) {
  const Command command =
      group.add("annotate", "Put a marker with a text into the recordings, at this moment");
  struct Options {
    std::string text;
    std::string target;
  };
  const auto options = std::make_shared<Options>();
  command.collector();
  command.json();
  command.positional("TEXT", options->text, "Text of the marker").required();
  command.positional("TARGET", options->target,
                     "Session or agent (default: every session that records)");
  command.run([options](const Invocation& invocation) {
    return annotate(online(invocation), options->target, options->text);
  });
}

}  // namespace collect::ctl
