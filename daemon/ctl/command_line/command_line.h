// The command line as a whole: what is wrong with a line, and the help.
#pragma once

#include <vector>

namespace collect::ctl {

class CommandGroup;

// A heading of the help, and what adds the commands below it, in their order there.
struct CommandList {
  const char* title;
  std::vector<void (*)(const CommandGroup&)> commands;
};

// Exit codes: those of the command; 2 for wrong usage, of a command that runs a program 125.
int parse_and_run(int argc, char** argv, const std::vector<CommandList>& lists);

}  // namespace collect::ctl
