#include "daemon/collector_functions.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "storage/symbols.h"

namespace collect::daemon {
namespace {

// Iterative, so that no pattern can make it slow or deep: on a mismatch the last * takes one more.
bool matches_glob(std::string_view pattern, std::string_view text) {
  size_t p = 0;
  size_t t = 0;
  size_t star = std::string_view::npos;
  size_t taken = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++taken;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

// "ns::f<int>(char)" without "(char)"; "operator()" and "(anonymous namespace)::f" keep theirs.
std::string_view without_arguments(std::string_view name) {
  size_t depth = 0;
  for (size_t at = name.size(); at-- > 1;) {
    if (name[at] == ')') ++depth;
    if (name[at] == '(' && depth != 0 && --depth == 0) return name.substr(0, at);
  }
  return name;
}

}  // namespace

bool means_function(std::string_view pattern, std::string_view linkage_name,
                    std::string_view demangled) {
  return matches_glob(pattern, linkage_name) || matches_glob(pattern, demangled) ||
         matches_glob(pattern, without_arguments(demangled));
}

Result<FunctionPatterns> FunctionPatterns::parse(const std::vector<std::string>& texts) {
  FunctionPatterns patterns;
  for (const std::string& text : texts) {
    if (text.empty()) return Error{Code::kInvalidArgument, "functions: an empty name"};
    if (!text.starts_with("0x")) {
      patterns.patterns_.push_back(text);
      continue;
    }
    uint64_t id = 0;
    const auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), id, 16);
    if (error != std::errc{} || end != text.data() + text.size()) {
      return Error{Code::kInvalidArgument, "functions: \"" + text + "\" is not a function id"};
    }
    patterns.ids_.push_back(id);
  }
  return patterns;
}

Result<std::vector<uint64_t>> FunctionPatterns::resolve(
    const std::vector<storage::ModuleInfo>& modules,
    const std::vector<std::string>& symbol_directories, size_t most) const {
  std::set<uint64_t> ids(ids_.begin(), ids_.end());
  std::vector<bool> matched(patterns_.size(), false);
  std::string first_problem;
  if (!patterns_.empty()) {
    for (const storage::ModuleInfo& module : modules) {
      const auto file = storage::load_symbol_file(module, symbol_directories);
      if (!file.ok()) {
        if (first_problem.empty()) first_problem = file.error().message;
        continue;
      }
      (*file)->each_function([&](uint64_t address, std::string_view linkage_name) {
        if (address > UINT32_MAX) return;
        const std::string name = storage::demangled(linkage_name);
        for (size_t at = 0; at < patterns_.size(); ++at) {
          if (!means_function(patterns_[at], linkage_name, name)) continue;
          matched[at] = true;
          ids.insert(uint64_t{module.module_id} << 32 | address);
        }
      });
    }
  }
  const auto missing = std::find(matched.begin(), matched.end(), false);
  if (missing != matched.end()) {
    const std::string& pattern = patterns_[static_cast<size_t>(missing - matched.begin())];
    return Error{Code::kNotFound, "no function \"" + pattern + "\" in the " +
                                      std::to_string(modules.size()) + " modules of this agent" +
                                      (first_problem.empty() ? "" : " (" + first_problem + ")")};
  }
  if (ids.size() > most) {
    return Error{Code::kLimit, std::to_string(ids.size()) +
                                   " functions match, and an agent holds at most " +
                                   std::to_string(most) + ": narrow the patterns"};
  }
  return std::vector<uint64_t>(ids.begin(), ids.end());
}

}  // namespace collect::daemon
