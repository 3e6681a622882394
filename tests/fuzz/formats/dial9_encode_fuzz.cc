// Bytes as instructions for the encoder: types, events right and wrong, refusals, aborts, headers
// inside the stream, small buffers. All that the encoder says it has written must be read back, and
// nothing else.
#include <cstdint>
#include <cstring>

#include "formats/core/result.h"
#include "tests/formats/dial9/random_stream.h"
#include "tests/formats/dial9/recorded.h"

namespace {

using namespace collect;
using namespace collect::dial9;

// Values from the input as long as it lasts, then zeros.
class Instructions {
 public:
  Instructions(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  bool empty() const { return at_ >= size_; }
  uint8_t byte() { return empty() ? 0 : data_[at_++]; }
  uint64_t number() {
    uint64_t value = 0;
    const size_t bytes = byte() % 9;
    for (size_t i = 0; i < bytes; ++i) value |= uint64_t{byte()} << (8 * i);
    return value;
  }
  std::string text() {
    std::string made(byte() % 8, 'a');
    for (char& c : made) c = static_cast<char>(byte());
    return made;
  }

 private:
  const uint8_t* data_;
  size_t size_;
  size_t at_ = 0;
};

OwnedValue value_of(Instructions& in, FieldType type, size_t depth) {
  OwnedValue value{type, {}};
  switch (type) {
    case FieldType::kI64:
      value.content = static_cast<int64_t>(in.number());
      break;
    case FieldType::kString:
    case FieldType::kBytes:
      value.content = in.text();
      break;
    case FieldType::kPooledString:
      value.content = PooledText{in.byte(), std::nullopt};
      if (depth == 0) value.content = PooledText{0, in.text()};
      break;
    case FieldType::kPooledStackFrames:
      value.content = PooledStack{in.byte(), std::nullopt};
      if (depth == 0)
        value.content = PooledStack{0, std::vector<uint64_t>(in.byte() % 4, in.number())};
      break;
    case FieldType::kStackFrames:
      value.content = std::vector<uint64_t>(in.byte() % 4, in.number());
      break;
    case FieldType::kStringMap: {
      OwnedValue::Pairs pairs;
      for (size_t n = in.byte() % 3; n != 0; --n) pairs.emplace_back(in.text(), in.text());
      value.content = std::move(pairs);
      break;
    }
    case FieldType::kDynamicList:
    case FieldType::kDynamicMap: {
      std::vector<OwnedValue> elements;
      const size_t count = in.empty() || depth > 20 ? 0 : in.byte() % 4;
      for (size_t i = 0; i < count * (type == FieldType::kDynamicMap ? 2 : 1); ++i)
        elements.push_back(value_of(in, static_cast<FieldType>(1 + in.byte() % 15), depth + 1));
      value.content = std::move(elements);
      break;
    }
    case FieldType::kBool:
      value.content = uint64_t{in.byte()} & 1;
      break;
    case FieldType::kU8:
      value.content = uint64_t{in.byte()};
      break;
    case FieldType::kU16:
      value.content = in.number() & 0xFFFF;
      break;
    case FieldType::kU32:
      value.content = in.number() & 0xFFFFFFFF;
      break;
    default:
      value.content = in.number();
      break;
  }
  return value;
}

// Some values are of another type than the schema says, some are missing.
OwnedEvent event_of(Instructions& in, const Schema& schema) {
  OwnedEvent event{schema, std::nullopt, {}};
  if (schema.has_timestamp != (in.byte() == 0xFF)) event.timestamp_ns = in.number();
  for (const Field& field : schema.fields) {
    const uint8_t choice = in.byte();
    if (choice == 0xFE) continue;
    const FieldType type = choice == 0xFF ? static_cast<FieldType>(1 + in.byte() % 15) : field.type;
    if (field.optional && choice % 2 == 0) {
      event.values.push_back({type, {}});
    } else {
      event.values.push_back(value_of(in, type, 0));
    }
  }
  return event;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Instructions in(data, size);
  // Either a buffer of ours, which fills up, or one that grows.
  std::vector<uint8_t> buffer(in.byte() % 2 == 0 ? 0 : 64 + in.byte() * 8);
  std::unique_ptr<Encoder> encoder = buffer.empty()
                                         ? std::make_unique<Encoder>()
                                         : std::make_unique<Encoder>(MutableBytes(buffer));
  std::vector<std::pair<Schema, EventType>> types;
  std::vector<OwnedEvent> written;
  std::vector<uint8_t> stream;
  const auto ship = [&] {
    const std::vector<uint8_t> part = encoder->take();
    stream.insert(stream.end(), part.begin(), part.end());
  };
  while (!in.empty()) {
    const uint8_t what = in.byte();
    if (types.empty() || what < 20) {
      Schema schema{static_cast<uint16_t>(in.number()), in.text(), in.byte() % 4 != 0, {}};
      for (size_t n = in.byte() % 6; n != 0; --n)
        schema.fields.push_back(
            {in.text(), static_cast<FieldType>(in.byte() % 17), in.byte() % 2 == 0});
      if (const Result<EventType> type = encoder->define(schema))
        types.emplace_back(schema, type.value());
    } else if (what < 30) {
      if (!encoder->begin_stream()) ship();
    } else if (what < 40) {
      const auto& [schema, type] = types[in.byte() % types.size()];
      (void)encoder->annotate(type, {{in.byte(), in.text(), in.text()}});
    } else if (what < 45) {
      ship();
    } else if (what < 50) {
      encoder->begin_event(types[in.byte() % types.size()].second, in.number());
      encoder->abort_event();
    } else {
      const auto& [schema, type] = types[in.byte() % types.size()];
      OwnedEvent event = event_of(in, schema);
      if (encode(*encoder, type, event)) {
        written.push_back(std::move(event));
      } else {
        COLLECT_CHECK(encoder->refusal() != Refusal::kNone);
        if (encoder->refusal() == Refusal::kNoRoom) ship();
      }
    }
  }
  ship();
  const dial9::testing::Recorder seen = dial9::testing::record(stream);
  COLLECT_CHECK(seen.rule == Rule::kNone);
  COLLECT_CHECK(seen.events.size() == written.size());
  for (size_t i = 0; i < written.size(); ++i)
    COLLECT_CHECK(dial9::testing::without_ids(seen.events[i]) == written[i]);
  return 0;
}
