#include "storage/forgiven_json.h"

#include <cstdint>

#include "formats/core/hex.h"

namespace collect::storage {

std::string forgiven_json(std::string_view json, bool replace_high_bytes) {
  std::string out;
  out.reserve(json.size() + 64);
  bool in_string = false;
  bool escaped = false;
  for (const char c : json) {
    const auto byte = static_cast<uint8_t>(c);
    if (in_string && byte < 0x20) {
      out += "\\u00" + hex_bytes(Bytes(&byte, 1));
      escaped = false;
      continue;
    }
    if (replace_high_bytes && byte >= 0x80) {
      out += '?';
      escaped = false;
      continue;
    }
    out += c;
    if (escaped) {
      escaped = false;
    } else if (in_string && c == '\\') {
      escaped = true;
    } else if (c == '"') {
      in_string = !in_string;
    }
  }
  return out;
}

}  // namespace collect::storage
