// dial9 streams for tests that send, store and cut them, and what a cut one still holds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/dial9/read/decoder.h"
#include "formats/dial9/writer.h"

namespace collect::fakes {

// The worked example of formats/dial9/FORMAT.md: a header, a schema, two events.
inline const std::vector<uint8_t> kDial9Example = {
    0x54, 0x52, 0x43, 0x00, 0x01,                                      // header
    0x01, 0x00, 0x00, 0x01, 0x00, 0x41, 0x01, 0x01, 0x00, 0x01, 0x00,  // schema
    0x76, 0x09,                                                        //
    0x02, 0x00, 0x00, 0x0a, 0x00, 0x00, 0xac, 0x02,                    // event
    0x02, 0x00, 0x00, 0x07, 0x00, 0x00, 0x01};                         // event
inline constexpr size_t kDial9ExampleFrameEnds[] = {5, 18, 26, 33};

// Several sub-streams with schemas, pools, resets and events of many lengths.
inline std::vector<uint8_t> dial9_stream(uint32_t sub_streams, uint32_t events_each,
                                         uint32_t seed = 1) {
  using dial9::FieldType;
  dial9::Encoder encoder;
  const dial9::Schema polled{.type_id = 3,
                             .name = "Polled",
                             .fields = {{"task", FieldType::kVarint},
                                        {"where", FieldType::kPooledString},
                                        {"note", FieldType::kString}}};
  const auto type = encoder.define(polled);
  bool whole = type.ok();
  uint64_t number = seed;
  for (uint32_t sub_stream = 0; sub_stream < sub_streams && whole; ++sub_stream) {
    whole = sub_stream == 0 || encoder.begin_stream();
    for (uint32_t event = 0; event < events_each && whole; ++event) {
      number = number * 6364136223846793005u + 1442695040888963407u;
      encoder.begin_event(*type, 1'000'000 + event * (number >> 52) * 50);
      encoder.put_varint(number >> (number & 63));
      encoder.put_pooled_string("place " + std::to_string(number >> 59));
      encoder.put_string(std::string(number >> 57, 'n'));
      whole = encoder.end_event();
    }
  }
  return whole ? encoder.take() : std::vector<uint8_t>();
}

// A stream with one event of so many bytes, and a little more.
inline std::vector<uint8_t> dial9_stream_with_large_event(size_t bytes) {
  dial9::Encoder encoder;
  const auto type = encoder.define(
      {.type_id = 1, .name = "Large", .fields = {{"text", dial9::FieldType::kString}}});
  if (!type.ok()) return {};
  encoder.begin_event(*type, 1);
  encoder.put_string(std::string(bytes, 'x'));
  return encoder.end_event() ? encoder.take() : std::vector<uint8_t>();
}

// How many bytes at the front are whole frames, as the decoder sees them that holds all the bytes.
inline size_t dial9_whole_bytes(Bytes bytes) {
  dial9::Decoder decoder;
  dial9::Visitor ignored;
  return decoder.decode(bytes, ignored).bytes;
}

}  // namespace collect::fakes
