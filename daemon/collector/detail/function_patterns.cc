#include "daemon/collector/detail/function_patterns.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "daemon/symbolize/limits.h"
#include "daemon/symbolize/nearest_function.h"
#include "formats/core/text/function_pattern.h"

namespace collect::daemon {

Result<FunctionPatterns> FunctionPatterns::parse(const std::vector<std::string>& texts) {
  auto words = parse_function_words(texts);
  if (!words.ok()) return words.error();
  FunctionPatterns patterns;
  for (FunctionWord& word : *words) {
    if (word.id) {
      patterns.ids_.push_back(*word.id);
    } else {
      patterns.patterns_.push_back(std::move(word.text));
    }
  }
  return patterns;
}

// One search through the modules of an agent. A file that several modules name is searched once.
class FunctionPatterns::Search {
 public:
  Search(const std::vector<std::string>& patterns, const symbolize::Symbolizer& symbolizer,
         const std::atomic<bool>& stop, size_t most)
      : patterns_(patterns),
        symbolizer_(symbolizer),
        stop_(stop),
        most_(most),
        matched_(patterns.size(), false) {}

  Status look_at(const storage::ModuleInfo& module, std::set<uint64_t>& ids) {
    const auto [found, is_new] =
        files_.try_emplace({module.path, module.build_id, module.size}, std::vector<uint32_t>());
    if (is_new) {
      auto searched = search(module);
      if (!searched.ok()) return searched.error();
      found->second = std::move(*searched);
    }
    for (const uint32_t address : found->second) {
      ids.insert(uint64_t{module.module_id} << 32 | address);
      if (ids.size() > most_) return {};
    }
    return {};
  }

  const std::vector<bool>& matched() const { return matched_; }
  const std::string& first_problem() const { return first_problem_; }

 private:
  Result<std::vector<uint32_t>> search(const storage::ModuleInfo& module) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline_ - std::chrono::steady_clock::now());
    if (left.count() <= 0) {
      return Error{Code::kLimit,
                   fmt::format("the search took more than {} s: name the functions by id",
                               symbolize::kMaxFunctionSearch.count() / 1000)};
    }
    auto answer = symbolizer_.find(module, patterns_, left, &stop_);
    if (!answer.ok()) return answer.error();
    for (size_t at = 0; at < answer->matched.size(); ++at) {
      if (answer->matched[at]) matched_[at] = true;
    }
    // The kernel's own module has no file anywhere.
    const bool has_file = !module.path.starts_with("linux-vdso");
    if (!answer->problem.empty() && first_problem_.empty() && has_file) {
      first_problem_ = fmt::format("{}: {}", module.path, answer->problem);
    }
    // Half an answer would make a filter that says it is whole.
    if (!answer->is_whole) answer->functions.clear();
    return std::move(answer->functions);
  }

  const std::vector<std::string>& patterns_;
  const symbolize::Symbolizer& symbolizer_;
  const std::atomic<bool>& stop_;
  const size_t most_;
  const std::chrono::steady_clock::time_point deadline_ =
      std::chrono::steady_clock::now() + symbolize::kMaxFunctionSearch;
  std::map<std::tuple<std::string, std::vector<uint8_t>, uint64_t>, std::vector<uint32_t>> files_;
  std::vector<bool> matched_;
  std::string first_problem_;
};

Result<FunctionPatterns::Matched> FunctionPatterns::match(
    const std::vector<storage::ModuleInfo>& modules, const symbolize::Symbolizer& symbolizer,
    const std::atomic<bool>& stop, size_t most) const {
  std::set<uint64_t> ids(ids_.begin(), ids_.end());
  Search search(patterns_, symbolizer, stop, most);
  if (!patterns_.empty()) {
    for (const storage::ModuleInfo& module : modules) {
      COLLECT_TRY(search.look_at(module, ids));
      if (ids.size() > most) break;
    }
  }
  if (ids.size() > most) {
    return Error{
        Code::kLimit,
        fmt::format("more functions match than an agent holds, at most {}: narrow the patterns",
                    most)};
  }
  Matched matched{{ids.begin(), ids.end()}, {}, search.first_problem()};
  for (size_t at = 0; at < patterns_.size(); ++at) {
    if (!search.matched()[at]) matched.unmatched.push_back(patterns_[at]);
  }
  return matched;
}

Result<std::vector<uint64_t>> FunctionPatterns::resolve(
    const std::vector<storage::ModuleInfo>& modules, const symbolize::Symbolizer& symbolizer,
    const std::atomic<bool>& stop, size_t most) const {
  auto matched = match(modules, symbolizer, stop, most);
  if (!matched.ok()) return matched.error();
  if (!matched->unmatched.empty()) {
    const std::string& word = matched->unmatched.front();
    const std::string near =  // of the program itself
        modules.empty() ? ""
                        : symbolize::nearest_function(symbolizer, modules.front(), word, &stop);
    return Error{
        Code::kNotFound,
        fmt::format("no function \"{}\" in the {} modules of this agent", word, modules.size()) +
            (near.empty() ? "" : fmt::format("; did you mean {}?", near)) +
            (matched->problem.empty() ? "" : fmt::format(" ({})", matched->problem))};
  }
  return std::move(matched->ids);
}

}  // namespace collect::daemon
