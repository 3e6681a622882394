// What a help text of collectctl lists.
#pragma once

#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace collect::ctl::testing {

// The commands of all groups: a name, and behind two spaces or more what it does.
inline std::vector<std::string> commands_in(const std::string& help) {
  static const std::regex kEntry("  ([a-z][a-z-]*) {2,}\\S.*");
  std::vector<std::string> commands;
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) {
    std::smatch entry;
    if (std::regex_match(line, entry, kEntry)) commands.push_back(entry[1]);
  }
  return commands;
}

}  // namespace collect::ctl::testing
