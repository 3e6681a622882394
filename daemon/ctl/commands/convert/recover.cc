// collectctl recover
#include "daemon/ctl/convert/recover.h"

#include <unistd.h>

#include <iostream>

#include "daemon/ctl/command_line/shared_options.h"
#include "daemon/ctl/commands/commands.h"

namespace collect::ctl {

void add_recover(const CommandGroup& group) {
  const Command command =
      group.add("recover", "Repair a cut off or damaged capture, as far as it can be read");
  const auto options = std::make_shared<RecoverOptions>();
  command
      .positional("PATH", options->path,
                  "An unsealed session (sealed in place), or a file of any other format")
      .required();
  command.option("-o,--output", "FILE", &options->output,
                 "File for the repaired capture (not for a session)");
  command.flag("--force", options->force, "Replace the output file");
  command.json();
  command.run([options](const Invocation& invocation) {
    options->json = invocation.json;
    options->progress = is_terminal(STDERR_FILENO);
    return recover(*options, std::cout, std::cerr);
  });
}

}  // namespace collect::ctl
