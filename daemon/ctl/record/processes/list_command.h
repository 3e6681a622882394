// `collectctl list FILE`: the functions of a program or library that `run --dynamic` and `attach`
// can record, by name. `collectctl list PID`: the files that a process runs, and how much of each.
#pragma once

#include <sys/types.h>

#include <iosfwd>
#include <string>
#include <vector>

namespace collect::ctl {

struct ListOptions {
  pid_t pid = 0;                       // 0: of `path`
  std::string path;                    // of a program or library
  std::vector<std::string> functions;  // formats/core/text/function_pattern.h; empty: all
  bool summary = false;                // of a file: how much, and the reasons; `all`: by function
  bool all = false;                    // those that cannot be recorded, too, with the reason
  bool json = false;
};

// 0: something can be recorded, and of a process: it can be attached to. 1: not, and the reason was
// printed. 2: there is no such file or process, or it can't be read.
int list(const ListOptions& options, std::ostream& out, std::ostream& err);

}  // namespace collect::ctl
