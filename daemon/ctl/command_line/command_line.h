// The command line as a whole: which commands there are, what is wrong with a line, and the help.
#pragma once

namespace collect::ctl {

// Exit codes: those of the command; 2 for wrong usage, of a command that runs a program 125.
int parse_and_run(int argc, char** argv);

}  // namespace collect::ctl
