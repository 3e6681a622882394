// Seeded random content of every kind, the events that were written, and their stream.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "formats/dial9/owned.h"
#include "formats/dial9/writer.h"

namespace collect::dial9::testing {

class RandomContent {
 public:
  explicit RandomContent(uint64_t seed) : random_(seed) {}

  uint64_t below(uint64_t end) { return random_() % end; }
  uint64_t number() {
    static constexpr uint64_t kEdges[] = {0,
                                          1,
                                          127,
                                          128,
                                          16383,
                                          16384,
                                          0xFFFFFFFF,
                                          0x100000000,
                                          (1ull << 56) - 1,
                                          1ull << 56,
                                          (1ull << 63) - 1,
                                          1ull << 63,
                                          UINT64_MAX};
    return below(2) == 0 ? kEdges[below(std::size(kEdges))] : random_() >> below(64);
  }
  std::string text() {
    static const std::string kParts[] = {"a",  "é",  "中", "😀",   " ",
                                         "\"", "\\", "\n", "\x01", "\xEF\xBB\xBF"};
    std::string made;
    for (uint64_t n = below(7); n != 0; --n) made += kParts[below(std::size(kParts))];
    return made;
  }
  std::vector<uint64_t> stack() {
    std::vector<uint64_t> made(below(5));
    for (uint64_t& address : made) address = number();
    return made;
  }
  FieldType type() { return static_cast<FieldType>(1 + below(15)); }

  // `depth`: of the lists and maps around it; pooled values within them carry only ids.
  OwnedValue value(FieldType type, size_t depth = 0) {
    OwnedValue made{type, {}};
    switch (type) {
      case FieldType::kI64:
        made.content = static_cast<int64_t>(number());
        break;
      case FieldType::kString:
      case FieldType::kBytes:
        made.content = text();
        break;
      case FieldType::kPooledString:
        made.content = depth == 0 ? PooledText{0, text()}
                                  : PooledText{static_cast<uint32_t>(below(9)), std::nullopt};
        break;
      case FieldType::kPooledStackFrames:
        made.content = depth == 0 ? PooledStack{0, stack()}
                                  : PooledStack{static_cast<uint32_t>(below(9)), std::nullopt};
        break;
      case FieldType::kStackFrames:
        made.content = stack();
        break;
      case FieldType::kStringMap: {
        OwnedValue::Pairs pairs;
        for (uint64_t n = below(4); n != 0; --n) pairs.emplace_back(text(), text());
        made.content = std::move(pairs);
        break;
      }
      case FieldType::kDynamicList:
      case FieldType::kDynamicMap: {
        std::vector<OwnedValue> elements;
        const uint64_t count = below(4) * (type == FieldType::kDynamicMap ? 2 : 1);
        for (uint64_t i = 0; i < count; ++i) {
          const auto kinds = depth < 4 ? 15u : 13u;
          elements.push_back(value(static_cast<FieldType>(1 + below(kinds)), depth + 1));
        }
        made.content = std::move(elements);
        break;
      }
      case FieldType::kBool:
        made.content = below(2);
        break;
      case FieldType::kU8:
        made.content = number() & 0xFF;
        break;
      case FieldType::kU16:
        made.content = number() & 0xFFFF;
        break;
      case FieldType::kU32:
        made.content = number() & 0xFFFFFFFF;
        break;
      default:
        made.content = number();
        break;
    }
    return made;
  }

  Schema schema(uint16_t type_id) {
    Schema made{type_id, text(), below(4) != 0, {}};
    for (uint64_t n = below(9); n != 0; --n) made.fields.push_back({text(), type(), below(2) == 0});
    return made;
  }

  OwnedEvent event(const Schema& schema, uint64_t& clock) {
    OwnedEvent made{schema, std::nullopt, {}};
    if (schema.has_timestamp) made.timestamp_ns = next_time(clock);
    for (const Field& field : schema.fields) {
      if (field.optional && below(2) == 0) {
        made.values.push_back({field.type, {}});
      } else {
        made.values.push_back(value(field.type));
      }
    }
    return made;
  }

 private:
  // Around the largest delta, far ahead, and back.
  uint64_t next_time(uint64_t& clock) {
    switch (below(8)) {
      case 0:
        return clock += kMaxTimestampDelta;
      case 1:
        return clock += kMaxTimestampDelta + 1;
      case 2:
        return clock = number();
      case 3:
        return clock = clock == 0 ? 0 : clock - 1;
      default:
        return clock += below(1000);
    }
  }

  std::mt19937_64 random_;
};

struct RandomStream {
  std::vector<uint8_t> bytes;
  std::vector<OwnedEvent> events;
  std::vector<Annotation> annotations;  // as the stream repeats them
  std::vector<uint64_t> headers;
};

// Several sub-streams of events of several types; type ids are sparse.
inline RandomStream random_stream(uint64_t seed, size_t sub_streams = 3, size_t events = 20) {
  RandomContent content(seed);
  RandomStream made;
  Encoder encoder;
  std::vector<std::pair<Schema, EventType>> types;
  for (uint16_t i = 0; i < 6; ++i) {
    const uint16_t id = i < 4 ? i : static_cast<uint16_t>(65535 - 300 * (i - 4));
    Schema schema = content.schema(id);
    const EventType type = *encoder.define(schema);
    if (!schema.fields.empty() && content.below(3) == 0) {
      (void)encoder.annotate(type, {{static_cast<uint16_t>(content.below(schema.fields.size())),
                                     content.text(), content.text()}});
    }
    types.emplace_back(std::move(schema), type);
  }
  uint64_t clock = 0;
  for (size_t sub = 0; sub < sub_streams; ++sub) {
    if (sub != 0) {
      if (!encoder.begin_stream()) return {};
      made.headers.push_back(encoder.total_bytes() - kHeaderBytes);
    } else {
      made.headers.push_back(0);
    }
    for (size_t n = content.below(events + 1); n != 0; --n) {
      const auto& [schema, type] = types[content.below(types.size())];
      OwnedEvent event = content.event(schema, clock);
      if (!encode(encoder, type, event)) return {};
      made.events.push_back(std::move(event));
    }
  }
  made.bytes = encoder.take();
  return made;
}

// Pool ids are the encoder's choice: events are compared without those that stand for content.
inline OwnedEvent without_ids(OwnedEvent event) {
  for (OwnedValue& value : event.values) {
    if (auto* text = std::get_if<PooledText>(&value.content); text != nullptr && text->text)
      text->id = 0;
    if (auto* stack = std::get_if<PooledStack>(&value.content);
        stack != nullptr && stack->addresses)
      stack->id = 0;
  }
  return event;
}

}  // namespace collect::dial9::testing
