// The examples of WIRE.md, so that what is expected is not made by what is tested.
#pragma once

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace collect::wire {

// The bytes of the section with this heading, in order: two-digit hexadecimal words at the front of
// the indented lines.
inline std::vector<uint8_t> documented_bytes(std::string_view heading) {
  std::ifstream file(COLLECT_WIRE_DOCUMENT);
  std::vector<uint8_t> bytes;
  bool in_section = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## ")) in_section = line.substr(3) == heading;
    if (!in_section || !line.starts_with("    ")) continue;
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      if (word.size() != 2 || word.find_first_not_of("0123456789abcdef") != std::string::npos) {
        break;
      }
      bytes.push_back(static_cast<uint8_t>(std::stoul(word, nullptr, 16)));
    }
  }
  return bytes;
}

}  // namespace collect::wire
