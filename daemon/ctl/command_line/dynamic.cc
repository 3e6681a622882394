// Programs that were not prepared, as the command line knows them: `plan`, and --dynamic of `run`.
#include <iostream>

#include "daemon/ctl/command_line/command_line.h"

namespace collect::ctl {

void add_dynamic(CLI::App& command, std::vector<std::string>& patterns) {
  command
      .add_flag(
          "--dynamic", patterns,
          "Record a program that was not built for it, by changing its code in memory; with "
          "=PATTERN: those of it and its libraries whose file name or path matches, and files "
          "named by path, such as programs that it starts; may be repeated (x86-64)")
      ->type_name("PATTERN");
}

void add_plan(CLI::App& app, Line& line) {
  CLI::App* command = add_command(
      app, "plan", "Show how much of a program run --dynamic can record, and why not the rest");
  command->add_option("FILE", line.plan.path, "A program or a shared library")->required();
  command->add_flag("--functions", line.plan.functions, "With each function that is left out");
  add_json(command, line);
  command->callback([&line] {
    line.command = [&line] {
      line.plan.json = line.json;
      return plan(line.plan, std::cout, std::cerr);
    };
  });
  command->footer(
      "The program is neither run nor changed.\n"
      "Exit code 1: nothing of it can be recorded so; a message says why.\n"
      "Example: collectctl plan /usr/bin/perl");
}

}  // namespace collect::ctl
