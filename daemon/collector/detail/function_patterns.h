// Which functions a request means: "0x…" ids, names, or patterns with *. Names are looked up in the
// symbol files of the agent's modules by child processes (symbolize/), so it may take its time.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/symbolize/symbolizer.h"
#include "formats/core/result.h"
#include "storage/model/session_types.h"

namespace collect::daemon {

class FunctionPatterns {
 public:
  static Result<FunctionPatterns> parse(const std::vector<std::string>& texts);

  bool empty() const { return ids_.empty() && patterns_.empty(); }

  struct Matched {
    std::vector<uint64_t> ids;           // sorted
    std::vector<std::string> unmatched;  // patterns that match no function of these modules
    std::string problem;                 // the first file that could not be searched, and why
  };
  // kLimit and kCancelled as below.
  Result<Matched> match(const std::vector<storage::ModuleInfo>& modules,
                        const symbolize::Symbolizer& symbolizer, const std::atomic<bool>& stop,
                        size_t most) const;
  // Sorted ids. kNotFound when nothing matches, kLimit when more functions match than `most`, which
  // an agent can hold, or when the search takes too long: both say what to do. kCancelled: `stop`.
  Result<std::vector<uint64_t>> resolve(const std::vector<storage::ModuleInfo>& modules,
                                        const symbolize::Symbolizer& symbolizer,
                                        const std::atomic<bool>& stop, size_t most) const;

 private:
  class Search;

  std::vector<uint64_t> ids_;
  std::vector<std::string> patterns_;
};

}  // namespace collect::daemon
