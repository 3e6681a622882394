// `collectctl recover PATH` repairs what was cut off or damaged, as far as its contents are valid.
// A session is sealed where it is, as the daemon's next start would do; a file of another format is
// written again, and the damaged one is not changed.
#pragma once

#include <iosfwd>
#include <string>

namespace collect::ctl {

struct RecoverOptions {
  std::string path;
  std::string output;     // of a file
  bool force = false;     // replace the output
  bool json = false;      // one document
  bool progress = false;  // `err` is a terminal
};

// 0: whole now, or it was. 1: whole now, and what is missing was printed. 2: nothing was done.
int recover(const RecoverOptions& options, std::ostream& out, std::ostream& err);

}  // namespace collect::ctl
