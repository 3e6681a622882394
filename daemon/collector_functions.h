// Which functions somebody means: "0x…" ids, names, or patterns with *. Names are looked up in the
// symbol files of the agent's modules, so it may take its time and reads the disk.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/core/result.h"
#include "storage/session_types.h"

namespace collect::daemon {

class FunctionPatterns {
 public:
  static Result<FunctionPatterns> parse(const std::vector<std::string>& texts);

  bool empty() const { return ids_.empty() && patterns_.empty(); }
  // Sorted ids. kNotFound when nothing matches, kLimit when more functions match than `most`, which
  // an agent can hold: both say what to do.
  Result<std::vector<uint64_t>> resolve(const std::vector<storage::ModuleInfo>& modules,
                                        const std::vector<std::string>& symbol_directories,
                                        size_t most) const;

 private:
  std::vector<uint64_t> ids_;
  std::vector<std::string> patterns_;
};

// Whether the pattern means a function of this name: the linkage name, the name as C++ writes it,
// or the latter without its arguments. * stands for any text.
bool means_function(std::string_view pattern, std::string_view linkage_name,
                    std::string_view demangled);

}  // namespace collect::daemon
