// collectctl pack, collectctl unpack
#include "daemon/ctl/convert/pack.h"

#include <unistd.h>

#include <iostream>

#include "daemon/ctl/command_line/shared_options.h"
#include "daemon/ctl/commands/commands.h"
#include "daemon/ctl/control/session_conversion.h"

namespace collect::ctl {
namespace {

struct PackLine {
  PackOptions options;
  bool at_collector = false;
};

void add(const Command& command, bool unpack) {
  const auto line = std::make_shared<PackLine>();
  line->options.unpack = unpack;
  command.positional("PATH", line->options.paths,
                     "Sessions that are sealed; of a directory above sessions the newest");
  command.flag("--at-collector", line->at_collector,
               "Let the collector do it with its sessions PATH (default: the newest)");
  command.json();
  command.collector();
  command.run(
      [line](const Invocation& invocation) {
        PackOptions& options = line->options;
        if (line->at_collector) {
          return pack_sessions(online(invocation), options.paths, options.unpack);
        }
        options.json = invocation.json;
        options.progress = is_terminal(STDERR_FILENO);
        return pack(options, std::cout, std::cerr);
      },
      [line] {
        return line->at_collector || !line->options.paths.empty() ? "" : "PATH is required";
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
