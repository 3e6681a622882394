// collectctl merge
#include "daemon/ctl/convert/merge.h"

#include <unistd.h>

#include <iostream>

#include "daemon/ctl/command_line/shared_options.h"
#include "daemon/ctl/commands/commands.h"

namespace collect::ctl {

void add_merge(const CommandGroup& group) {
  const Command command =
      group.add("merge", "Join what several collectors stored of the same recordings");
  const auto options = std::make_shared<MergeOptions>();
  command
      .positional("PATH", options->inputs,
                  "Sessions, or directories above sessions: all below them")
      .required();
  command
      .option("-o,--output", "DIRECTORY", &options->output,
              "Directory that the sessions are made in")
      .required();
  command.json();
  command.footer(
      "An agent with several collectors (COLLECT_CONNECT=A,B) leaves a part of its session at\n"
      "each that it used. Exit code 1: merged, but some records are in none of the parts; a\n"
      "message says which.\n"
      "Example: collectctl merge collector-a/traces collector-b/traces -o merged");
  command.run([options](const Invocation& invocation) {
    options->json = invocation.json;
    options->progress = is_terminal(STDERR_FILENO);
    return merge(*options, std::cout, std::cerr);
  });
}

}  // namespace collect::ctl
