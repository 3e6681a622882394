// The examples of WIRE.md, so that what is expected is not made by what is tested.
#pragma once

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace collect::wire {

// The bytes of the section (## or ###) with this heading, in order: two-digit hexadecimal words at
// the front of the indented lines.
inline std::vector<uint8_t> documented_bytes(std::string_view heading) {
  std::ifstream file(COLLECT_WIRE_DOCUMENT);
  std::vector<uint8_t> bytes;
  size_t depth = 0;  // of the section's heading; 0 outside of it
  for (std::string line; std::getline(file, line);) {
    const size_t hashes = line.find_first_not_of('#');
    if (hashes != 0 && hashes != std::string::npos && line[hashes] == ' ') {
      if (line.substr(hashes + 1) == heading) {
        depth = hashes;
      } else if (hashes <= depth) {
        depth = 0;
      }
    }
    if (depth == 0 || !line.starts_with("    ")) continue;
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
