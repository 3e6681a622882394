#include "daemon/upload/s3/uri.h"

#include <algorithm>

namespace collect::upload {
namespace {

void encode_byte(std::string& out, char c) {
  constexpr char kHexDigits[] = "0123456789ABCDEF";
  const auto byte = static_cast<uint8_t>(c);
  out += '%';
  out += kHexDigits[byte >> 4];
  out += kHexDigits[byte & 15];
}

bool stays_raw(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

std::string encode_all_but(std::string_view text, bool keep_slash) {
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  for (const char c : text) {
    if (stays_raw(c) || (keep_slash && c == '/')) {
      out += c;
    } else {
      encode_byte(out, c);
    }
  }
  return out;
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

std::string encode_uri(std::string_view text) {
  return encode_all_but(text, false);
}
std::string encode_path(std::string_view path) {
  return encode_all_but(path, true);
}

std::string canonical_query(const QueryFields& query) {
  QueryFields encoded;
  encoded.reserve(query.size());
  for (const auto& [name, value] : query) encoded.emplace_back(encode_uri(name), encode_uri(value));
  std::sort(encoded.begin(), encoded.end());
  std::string text;
  for (const auto& [name, value] : encoded) {
    if (!text.empty()) text += '&';
    text += name;
    text += '=';
    text += value;
  }
  return text;
}

std::optional<std::string> decode_uri(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      out += text[at];
      continue;
    }
    if (text.size() - at < 3) return std::nullopt;
    const int high = hex_value(text[at + 1]);
    const int low = hex_value(text[at + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    out += static_cast<char>(high << 4 | low);
    at += 2;
  }
  return out;
}

}  // namespace collect::upload
