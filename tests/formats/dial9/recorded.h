// What a decoder shows of a stream, as values that tests can compare.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "formats/dial9/json_lines.h"
#include "formats/dial9/owned.h"
#include "formats/dial9/read/stream_decoder.h"

namespace collect::dial9::testing {

// FORMAT.md "Grammar".
inline const std::vector<uint8_t> kHeader = {'T', 'R', 'C', 0, 1};

inline std::vector<uint8_t> joined(std::initializer_list<std::vector<uint8_t>> parts) {
  std::vector<uint8_t> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

struct Recorder : Visitor {
  void on_header(uint64_t offset) { headers.push_back(offset); }
  void on_schema(FrameRange, const KnownSchema& schema) { schemas.push_back(schema.to_schema()); }
  void on_event(const Event& event) {
    events.push_back(to_owned(event));
    ends.push_back(event.range().end);
  }
  void on_strings(FrameRange, StringPoolView strings) { pool_frames.push_back(strings.size()); }
  void on_stacks(FrameRange, StackPoolView stacks) { pool_frames.push_back(stacks.size()); }
  void on_reset(FrameRange, uint64_t time) { resets.push_back(time); }
  void on_annotations(FrameRange, const AnnotationsView& view) {
    view.for_each([&](uint16_t field, std::string_view key, std::string_view value) {
      annotations.push_back({field, std::string(key), std::string(value)});
    });
  }
  bool operator==(const Recorder& other) const {
    return headers == other.headers && schemas == other.schemas && events == other.events &&
           ends == other.ends && pool_frames == other.pool_frames && resets == other.resets &&
           annotations == other.annotations && rule == other.rule &&
           frame_offset == other.frame_offset;
  }

  std::vector<uint64_t> headers;
  std::vector<Schema> schemas;
  std::vector<OwnedEvent> events;
  std::vector<uint64_t> ends;
  std::vector<uint32_t> pool_frames;
  std::vector<uint64_t> resets;
  std::vector<Annotation> annotations;
  Rule rule = Rule::kNone;
  uint64_t frame_offset = 0;
};

inline void note_problem(const std::optional<Problem>& problem, Recorder& seen) {
  if (!problem) return;
  seen.rule = problem->rule;
  seen.frame_offset = problem->frame_offset;
}

// In one go. The copy has the bytes' own length, so that sanitizers see any read outside.
inline Recorder record(Bytes stream, DecoderOptions options = {}) {
  const std::vector<uint8_t> copy(stream.begin(), stream.end());
  Recorder seen;
  Decoder decoder(options);
  const Decoded decoded = decoder.decode(copy, seen);
  note_problem(decoder.finish(Bytes(copy).subspan(decoded.bytes)), seen);
  return seen;
}

// Pushed in pieces of these sizes, the last one again and again.
inline Recorder record_pieces(Bytes stream, std::vector<size_t> sizes, StreamOptions options = {}) {
  Recorder seen;
  StreamDecoder decoder(options);
  for (size_t at = 0, i = 0; at < stream.size(); ++i) {
    const size_t size = std::min(sizes[std::min(i, sizes.size() - 1)], stream.size() - at);
    const std::vector<uint8_t> piece(stream.begin() + static_cast<ptrdiff_t>(at),
                                     stream.begin() + static_cast<ptrdiff_t>(at + size));
    if (decoder.push(piece, seen) == DecodeState::kFailed) break;
    at += size;
  }
  note_problem(decoder.finish(), seen);
  return seen;
}

inline std::string json_lines(Bytes stream) {
  VectorSink sink;
  (void)dump_json_lines(stream, sink);
  return {sink.bytes().begin(), sink.bytes().end()};
}

}  // namespace collect::dial9::testing
