// What a peer did wrong, by the name of the rule. The first fault of a rule is kept.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace collect::conformance {

class Faults {
 public:
  void add(std::string_view rule, const std::string& what) { first_.emplace(rule, what); }
  // Empty: none.
  std::string of(std::string_view rule) const {
    const auto known = first_.find(rule);
    return known == first_.end() ? "" : known->second;
  }

 private:
  std::map<std::string_view, std::string> first_;  // the names are literals
};

}  // namespace collect::conformance
