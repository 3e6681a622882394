#include "daemon/symbolize/function_pattern.h"

#include <cstddef>

namespace collect::symbolize {
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

}  // namespace collect::symbolize
