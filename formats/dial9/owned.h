// Events as values that own what they hold: for tools that keep or change events, and for tests.
// Slower than the visitor by far, and larger; lists and maps are nested as deep as
// kMaxNestingDepth.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "formats/dial9/read/decoder.h"
#include "formats/dial9/writer.h"

namespace collect::dial9 {

// A reference into a pool, with what it meant when it was read. `id` alone when the pool has not
// defined it, and within lists and maps.
struct PooledText {
  uint32_t id = 0;
  std::optional<std::string> text;
  bool operator==(const PooledText&) const = default;
};

struct PooledStack {
  uint32_t id = 0;
  std::optional<std::vector<uint64_t>> addresses;
  bool operator==(const PooledStack&) const = default;
};

struct OwnedValue {
  using Pairs = std::vector<std::pair<std::string, std::string>>;

  FieldType type = FieldType::kVarint;
  // monostate: absent. uint64_t: Varint, U8, U16, U32, Bool (0 or 1), and the bits of F64. string:
  // String and Bytes. The vector of values: the elements of a list, of a map keys and values by
  // turns.
  std::variant<std::monostate, uint64_t, int64_t, std::string, PooledText, PooledStack,
               std::vector<uint64_t>, Pairs, std::vector<OwnedValue>>
      content;

  bool present() const { return content.index() != 0; }
  bool operator==(const OwnedValue&) const = default;
};

struct OwnedEvent {
  Schema schema;
  std::optional<uint64_t> timestamp_ns;
  std::vector<OwnedValue> values;  // by the schema's fields

  const OwnedValue* find(std::string_view field_name) const;  // the first of this name
  bool operator==(const OwnedEvent&) const = default;
};

OwnedValue to_owned(const Value& value, const Pools& pools);
OwnedEvent to_owned(const Event& event);

// Encodes one event. Pooled values are interned by their content; an unresolved one keeps its id,
// which then means what the new stream has under it. False for the reasons of Encoder::end_event().
[[nodiscard]] bool encode(Encoder& encoder, EventType type, const OwnedEvent& event);

}  // namespace collect::dial9
