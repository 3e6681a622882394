// What Meta says about one stream, and the format string as a type. Meta JSON is read and written
// here; meta.h reads and writes the array around it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/core/result.h"
#include "formats/rtc/layout.h"
#include "formats/rtc/meta/decimal.h"

namespace collect::rtc {

enum class FormatKind : uint8_t {
  kRaw,
  kIndex,
  kJson,
  kInteger,  // [u]int8|16|32|64[le|be]
  kReal,     // float32|64[le|be]
  kLeb128,   // [u]leb128
  kTimespec,
  kUtf8,
  kPlatform,
  kAnnotation,  // annotate/<format of the text>
  kOther,       // only the application knows
};

struct Format {
  FormatKind kind = FormatKind::kRaw;
  bool is_signed = false;        // kInteger, kLeb128
  uint8_t bits = 0;              // kInteger, kReal
  std::optional<Endian> endian;  // kInteger, kReal; absent: the writer's own
  std::string text = "raw";      // as in Meta

  static Format parse(std::string_view text);
  static Format raw() { return {}; }

  // Bytes that every value takes; absent when it varies.
  std::optional<size_t> value_bytes() const;
  // Integer, real, LEB128 or timespec: something that a clock may tick in.
  bool is_number() const;
  // For an annotation: what is behind "annotate/".
  Format annotated() const;
};

struct StreamInfo {
  uint64_t id = 0;  // given by Writer::open_stream
  std::string name;
  Format format;
  std::optional<uint32_t> length;  // of every frame's payload; then frames have no length field
  bool cont = false;               // the objects together are one text or byte stream
  bool is_clock = false;           // "clock": true
  std::string clock;               // "clock": "<name>": whose time its objects have
  std::string delta;               // of a clock: adds to that clock
  std::string stream;              // of an annotation: what it is about
  std::optional<Decimal> gain;
  std::optional<Decimal> offset;
  // Any other keys, each with its value as JSON text, in the order of the file.
  std::vector<std::pair<std::string, std::string>> extra;

  // "name" as {"name":…} says it, or "id 9" without one.
  std::string label() const;
  // The text of an extra key, JSON as it is; empty when there is none.
  std::string_view extra_json(std::string_view key) const;
};

}  // namespace collect::rtc
