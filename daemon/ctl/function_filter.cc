#include "daemon/ctl/function_filter.h"

#include <algorithm>
#include <charconv>

namespace collect::ctl {

// Greedy with one point to return to: linear in practice, never worse than the product of the
// sizes.
bool glob_matches(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0;
  size_t star = std::string_view::npos, after_star = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      after_star = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++after_star;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

Result<FunctionFilter> FunctionFilter::make(const std::vector<std::string>& words,
                                            const NameTable& names) {
  FunctionFilter filter;
  filter.names_ = &names;
  for (const std::string& word : words) {
    if (!word.starts_with("0x") && !word.starts_with("0X")) {
      filter.words_.push_back(word);
      continue;
    }
    uint64_t id = 0;
    const char* end = word.data() + word.size();
    const auto parsed = std::from_chars(word.data() + 2, end, id, 16);
    if (parsed.ec != std::errc() || parsed.ptr != end) {
      return Error{Code::kInvalidArgument,
                   "--function " + word + ": not a function id (0x and up to 16 hex digits)"};
    }
    filter.ids_.push_back(id);
  }
  return filter;
}

bool FunctionFilter::wants(uint64_t function_id) {
  if (everything()) return true;
  if (const auto it = decided_.find(function_id); it != decided_.end()) return it->second;
  const bool wanted = std::find(ids_.begin(), ids_.end(), function_id) != ids_.end() ||
                      std::any_of(words_.begin(), words_.end(), [&](const std::string& word) {
                        const std::string_view name = names_->name_of(function_id);
                        return word == name || glob_matches(word, name);
                      });
  if (decided_.size() < kMaxRemembered) decided_.emplace(function_id, wanted);
  return wanted;
}

}  // namespace collect::ctl
