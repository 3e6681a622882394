// `collectctl report PATH`: calls, total and self time per function, thread, module or caller; the
// callers and callees of one function; where threads waited, and for which locks; the difference to
// another capture.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <limits>
#include <string>
#include <vector>

#include "storage/select/time_words.h"

namespace collect::ctl {

// kAuto: by time on the processor where that is known, else by total time.
// The last three are columns of `report --tui` alone.
enum class ReportSort : uint8_t {
  kAuto,
  kTotal,
  kSelf,
  kCpu,
  kCalls,
  kName,
  kAverage,
  kP99,
  kLongest
};
enum class ReportBy : uint8_t { kFunction, kThread, kModule, kCaller };

struct ReportOptions {
  std::string path;  // session, thread or file; or a directory above sessions
  ReportSort sort = ReportSort::kAuto;
  bool wall = false;  // without times on the processor
  ReportBy by = ReportBy::kFunction;
  uint64_t limit = std::numeric_limits<uint64_t>::max();  // rows printed
  std::vector<std::string> threads;  // storage/model/thread_pattern.h; empty: all
  select::WindowWords when;
  std::string other;         // the capture that --diff compares with; empty: none
  bool waits = false;        // instead: on which paths threads were off the processor
  bool locks = false;        // instead: which locks they waited for
  bool samples = false;      // instead: where they ran, by samples
  std::string graph;         // the function whose callers and callees are shown; empty: none
  bool percentiles = false;  // columns of them in the text; JSON always has them
  bool lines = false;        // file and line of each function in the text; JSON always has them
  bool json = false;         // one document
  bool color = false;
  size_t columns = 0;  // of the terminal; 0: there is none, and names are whole
  bool progress = false;
};

// 0: done; 1: some threads could not be read, or a thread or function that was asked for is not
// there; 2: a path itself cannot be read, or an option makes no sense.
int report(const ReportOptions& options, std::ostream& out, std::ostream& err);

}  // namespace collect::ctl
