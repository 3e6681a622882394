// collectctl symbolize
#include "daemon/ctl/convert/symbolize.h"

#include <iostream>

#include "daemon/ctl/command_line/shared_options.h"
#include "daemon/ctl/commands/commands.h"
#include "daemon/ctl/record/program/program_paths.h"

namespace collect::ctl {

void add_symbolize(const CommandGroup& group) {
  const Command command = group.add(
      "symbolize", "Name the functions of a sealed session from files with the same build id");
  struct Options {
    SymbolizeOptions symbolize;
    bool asks_debuginfod = false;
  };
  const auto options = std::make_shared<Options>();
  command.positional("PATH", options->symbolize.path,
                     "A session; the names are written into its manifest (default: your newest "
                     "recording)");
  command.option("--symbols", "DIRECTORY", options->symbolize.directories,
                 "Directory with unstripped files or dSYMs; may be repeated");
  command.flag("--debuginfod", options->asks_debuginfod,
               "Ask the servers of DEBUGINFOD_URLS for files that are not here");
  command.json();
  command.footer(
      "The paths of the modules, and /usr/lib/debug, are searched too.\n"
      "Exit code 1: some modules have no names; a message says why.\n"
      "Example: collectctl symbolize --symbols app/build/intermediates traces/session_…/pid_…");
  command.run([options](const Invocation& invocation) {
    SymbolizeOptions& wanted = options->symbolize;
    if (!has_capture(wanted.path, invocation.json)) return kExitUsage;
    wanted.json = invocation.json;
    if (options->asks_debuginfod) {
      const auto client = find_program("debuginfod-find");
      if (!client.ok()) {
        const Error error{client.code(), "--debuginfod: no debuginfod-find (package debuginfod)"};
        return answer_of(invocation).refuse(error, kExitUsage);
      }
      wanted.debuginfod_client = *client;
    }
    return symbolize(wanted, std::cout, std::cerr);
  });
}

}  // namespace collect::ctl
