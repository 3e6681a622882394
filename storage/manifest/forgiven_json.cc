#include "storage/manifest/forgiven_json.h"

#include <fmt/core.h>

#include <cstdint>

#include "formats/core/text/hex.h"
#include "formats/core/text/utf8.h"

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

std::optional<std::string> fault_of_json_text(std::string_view text) {
  const auto at = [](size_t offset, const char* what) {
    return fmt::format("offset {}: {}, which JSON does not have", offset, what);
  };
  for (size_t offset = 0; offset < text.size();) {
    const auto byte = static_cast<uint8_t>(text[offset]);
    if (byte == 0) return at(offset, "a NUL byte");
    if (byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') {
      return at(offset, "a control character");
    }
    if (byte < 0x80) {
      ++offset;
      continue;
    }
    const Utf8Step step = utf8_step(text.substr(offset));
    if (!step.is_valid) return at(offset, "a byte that is not UTF-8");
    offset += step.bytes;
  }
  return std::nullopt;
}

}  // namespace collect::storage
