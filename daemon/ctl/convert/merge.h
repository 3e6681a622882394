// `collectctl merge PATH… -o DIR`: the parts that several collectors stored of the same recordings,
// each recording as one session.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace collect::ctl {

struct MergeOptions {
  std::vector<std::string> inputs;  // sessions, or directories above sessions
  std::string output;               // the directory that the sessions are made in
  bool json = false;                // one document
  bool progress = false;            // `err` is a terminal
};

// 0: every recording is whole. 1: merged, and what is missing was printed. 2: nothing was made, or
// not all.
int merge(const MergeOptions& options, std::ostream& out, std::ostream& err);

}  // namespace collect::ctl
