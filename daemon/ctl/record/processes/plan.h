// `collectctl list --plan FILE`: how much of a program or library `run --dynamic` can record, and
// why not the rest. Nothing is run or changed.
#pragma once

#include <iosfwd>
#include <string>

namespace collect::ctl {

struct PlanOptions {
  std::string path;
  bool functions = false;  // each function that is left out, too
  bool json = false;       // one document, with each of them
};

// 0: there is a plan. 1: nothing of it can be recorded, and the reason was printed. 2: it can't be
// read.
int plan(const PlanOptions& options, std::ostream& out, std::ostream& err);

}  // namespace collect::ctl
