// `collectctl inspect PATH`: what is this, its headers, counts, time range and health.
#pragma once

#include <iosfwd>
#include <string>

namespace collect::ctl {

struct InspectOptions {
  std::string path;       // session, thread or file; or a directory above sessions
  bool json = false;      // one document
  bool color = false;     // `out` is a terminal
  bool progress = false;  // `err` is a terminal
};

// 0: readable; 1: nothing in it can be read as a trace; 2: the path itself cannot be read.
int inspect(const InspectOptions& options, std::ostream& out, std::ostream& err);

}  // namespace collect::ctl
