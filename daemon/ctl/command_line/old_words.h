// Commands and options that have another name now: the old one works for one release and is in no
// help.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace collect::ctl {

struct OldWords {
  const char* command;  // of an option: the command that has it; empty: `old` is a command
  const char* old;
  const char* now;
};

std::span<const OldWords> old_words();

// Programs of their own, which were commands.
struct OldProgram {
  const char* old;
  const char* program;
};

std::span<const OldProgram> old_programs();

struct Renamed {
  std::vector<std::string> arguments;  // in today's words
  std::string program;                 // that is started in place of collectctl; empty: none
  std::string note;                    // one line with what is old and new; empty: nothing is old
};

// `arguments` end before the program that `run` starts.
Renamed rename_old_words(std::vector<std::string> arguments);

}  // namespace collect::ctl
