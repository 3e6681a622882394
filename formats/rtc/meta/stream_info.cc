#include "formats/rtc/meta/stream_info.h"

#include <fmt/core.h>

namespace collect::rtc {
namespace {

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// "", "le" or "be", and nothing behind.
bool parse_endian(std::string_view text, std::optional<Endian>& endian) {
  if (text.empty()) return true;
  if (text != "le" && text != "be") return false;
  endian = text == "le" ? Endian::kLittle : Endian::kBig;
  return true;
}

// "int16le" and the like, behind the "u"; leaves the format as it is when the text is none.
void parse_number(std::string_view text, bool is_unsigned, Format& format) {
  const bool real = !is_unsigned && take_prefix(text, "float");
  if (!real && !take_prefix(text, "int")) return;
  struct Width {
    std::string_view text;
    uint8_t bits;
  };
  for (const Width width : {Width{"8", 8}, Width{"16", 16}, Width{"32", 32}, Width{"64", 64}}) {
    if (real && width.bits < 32) continue;
    std::string_view rest = text;
    std::optional<Endian> endian;
    if (!take_prefix(rest, width.text) || !parse_endian(rest, endian)) continue;
    format.kind = real ? FormatKind::kReal : FormatKind::kInteger;
    format.bits = width.bits;
    format.endian = endian;
    format.is_signed = !is_unsigned;
    return;
  }
}

}  // namespace

Format Format::parse(std::string_view text) {
  Format format;
  format.text = std::string(text);
  format.kind = FormatKind::kOther;
  struct Plain {
    std::string_view text;
    FormatKind kind;
  };
  for (const Plain plain :
       {Plain{"raw", FormatKind::kRaw}, Plain{"index", FormatKind::kIndex},
        Plain{"json", FormatKind::kJson}, Plain{"timespec", FormatKind::kTimespec},
        Plain{"utf-8", FormatKind::kUtf8}, Plain{"platform", FormatKind::kPlatform}}) {
    if (text != plain.text) continue;
    format.kind = plain.kind;
    return format;
  }
  if (text.starts_with("annotate/")) {
    format.kind = FormatKind::kAnnotation;
    return format;
  }
  const bool is_unsigned = take_prefix(text, "u");
  if (text == "leb128") {
    format.kind = FormatKind::kLeb128;
    format.is_signed = !is_unsigned;
  } else {
    parse_number(text, is_unsigned, format);
  }
  return format;
}

std::optional<size_t> Format::value_bytes() const {
  if (kind == FormatKind::kInteger || kind == FormatKind::kReal) return size_t{bits} / 8;
  if (kind == FormatKind::kTimespec) return kTimespecBytes;
  return std::nullopt;
}

bool Format::is_number() const {
  return kind == FormatKind::kInteger || kind == FormatKind::kReal || kind == FormatKind::kLeb128 ||
         kind == FormatKind::kTimespec;
}

Format Format::annotated() const {
  if (kind != FormatKind::kAnnotation) return *this;
  return parse(std::string_view(text).substr(std::string_view("annotate/").size()));
}

std::string StreamInfo::label() const {
  return name.empty() ? fmt::format("id {}", id) : name;
}

std::string_view StreamInfo::extra_json(std::string_view key) const {
  for (const auto& [name_of_key, json] : extra) {
    if (name_of_key == key) return json;
  }
  return {};
}

}  // namespace collect::rtc
