// collectctl pack, collectctl unpack
#include "daemon/ctl/convert/pack.h"

#include <unistd.h>

#include <iostream>

#include "daemon/ctl/command_line/shared_options.h"
#include "daemon/ctl/commands/commands.h"

namespace collect::ctl {
namespace {

void add(const Command& command, bool unpack) {
  const auto options = std::make_shared<PackOptions>();
  options->unpack = unpack;
  command
      .positional("PATH", options->paths,
                  "Sessions that are sealed; of a directory above sessions the newest")
      .required();
  command.json();
  command.run([options](const Invocation& invocation) {
    options->json = invocation.json;
    options->progress = is_terminal(STDERR_FILENO);
    return pack(*options, std::cout, std::cerr);
  });
}

}  // namespace

void add_pack(const CommandGroup& group) {
  const Command command =
      group.add("pack", "Keep a session as one dense container, without its thread files");
  add(command, false);
  command.footer(
      "One dense container of its thread files is written. When each file was read back from it\n"
      "and compared, the files and the other containers are removed. Every command reads the\n"
      "session as before; `collectctl unpack` makes the files again.");
}

void add_unpack(const CommandGroup& group) {
  add(group.add("unpack", "Make the thread files of a packed session again, byte for byte"), true);
}

}  // namespace collect::ctl
