// `collectctl report PATH`: calls, total and self time per function.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <limits>
#include <string>
#include <vector>

namespace collect::ctl {

enum class ReportSort : uint8_t { kTotal, kSelf, kCalls, kName };

struct ReportOptions {
  std::string path;  // session, thread or file; or a directory above sessions
  ReportSort sort = ReportSort::kTotal;
  uint64_t limit = std::numeric_limits<uint64_t>::max();  // functions printed
  std::vector<std::string> threads;                       // storage/thread_pattern.h; empty: all
  bool json = false;                                      // one document
  bool color = false;
  bool progress = false;
};

// 0: done; 1: some threads could not be read, or one that was asked for is not there; 2: the path
// itself cannot be read.
int report(const ReportOptions& options, std::ostream& out, std::ostream& err);

}  // namespace collect::ctl
