// `--function` of dump: which function ids are wanted. A word matches by exact name, by glob (* and
// ?), or, as 0x…, by id. A word that matches nothing selects nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "daemon/ctl/names.h"
#include "formats/core/result.h"

namespace collect::ctl {

// * is any text, ? any one byte, everything else itself: names of C++ functions contain brackets.
bool glob_matches(std::string_view pattern, std::string_view text);

class FunctionFilter {
 public:
  // kInvalidArgument: an id that is no number. `names` must outlive the filter.
  static Result<FunctionFilter> make(const std::vector<std::string>& words, const NameTable& names);

  bool everything() const { return words_.empty() && ids_.empty(); }
  // Not thread-safe: it remembers its decisions.
  bool wants(uint64_t function_id);

 private:
  // Decisions beyond this many functions are made again each time.
  static constexpr size_t kMaxRemembered = size_t{1} << 20;

  std::vector<std::string> words_;
  std::vector<uint64_t> ids_;
  const NameTable* names_ = nullptr;
  std::unordered_map<uint64_t, bool> decided_;
};

}  // namespace collect::ctl
