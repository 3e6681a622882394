// collectctl list
#include <iostream>

#include "daemon/ctl/command_line/shared_options.h"
#include "daemon/ctl/commands/commands.h"
#include "daemon/ctl/record/processes/list_command.h"

namespace collect::ctl {

void add_list(const CommandGroup& group) {
  const Command command = group.add(
      "list", "List the functions of a program, or the files of a process, that can be recorded");
  const auto options = std::make_shared<ListOptions>();
  command
      .positional("TARGET", options->path,
                  "A program or a shared library; or the number of a process of this machine")
      .required();
  const Argument functions = command.option("--function", "PATTERN", options->functions,
                                            "Only functions with this name or pattern");
  command.flag("--all", options->all,
               "Also the functions that cannot be recorded, each with the reason");
  command
      .flag("--plan", options->summary,
            "How much of the file can be recorded, and how many functions cannot for which reason")
      .excludes(functions);
  command.json();
  command.run([options](const Invocation& invocation) {
    options->pid = process_in(options->path);
    options->json = invocation.json;
    if (options->pid != 0 && options->summary) {
      return answer_of(invocation)
          .refuse_briefly({Code::kInvalidArgument, "--plan is of a file, not of a process"},
                          kExitUsage);
    }
    return list(*options, std::cout, std::cerr);
  });
  command.footer(
      "By run --dynamic and attach; nothing is run or changed. A number is a process, ./NUMBER a\n"
      "file. Exit code 1: nothing can be recorded; a message says why.\n"
      "\n"
      "Examples:\n"
      "  collectctl list --function 'sqlite3_*' /usr/lib/x86_64-linux-gnu/libsqlite3.so.0\n"
      "  collectctl list --plan /usr/bin/perl\n"
      "  collectctl list $(pidof redis-server)");
}

}  // namespace collect::ctl
