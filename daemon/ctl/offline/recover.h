// `collectctl recover PATH`: makes whole what was cut off or damaged, as far as it holds. A session
// is sealed in its place, as the daemon's next start would; a file of another format is written
// anew, and the damaged one stays as it is.
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

// 0: whole now, or it was. 1: whole now, and what is missing was said. 2: nothing was done.
int recover(const RecoverOptions& options, std::ostream& out, std::ostream& err);

}  // namespace collect::ctl
