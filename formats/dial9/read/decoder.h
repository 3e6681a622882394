// Decodes dial9 frame by frame into a visitor: no allocation per event, no copy of any value. It
// works on bytes that the caller holds: a whole file in one call, or what has come of a growing
// one, again and again. stream_decoder.h is for bytes that are pushed in and do not stay.
//
// A Decoder belongs to one thread. What a visitor is handed (schemas, values, texts) may be used
// during the call only, except that with PoolStorage::kBorrow texts live as long as the bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "formats/core/bytes.h"
#include "formats/dial9/layout.h"
#include "formats/dial9/problem.h"
#include "formats/dial9/read/field_reader.h"
#include "formats/dial9/read/known_schema.h"
#include "formats/dial9/read/pool.h"

namespace collect::dial9 {

// Memory for the schemas, annotations and pools of one sub-stream.
inline constexpr uint64_t kDefaultMaxStateBytes = uint64_t{1} << 30;

enum class PoolStorage : uint8_t {
  kBorrow,  // entries point into the input, which stays where it is until the decoder is gone
  kCopy,    // entries are copied: the input may go
  kNone,    // nothing is resolved: for those who look for frames only
};

struct DecoderOptions {
  PoolStorage pools = PoolStorage::kBorrow;
  uint64_t max_frame_bytes = kMaxFrameBytes;  // at most kMaxFrameBytes
  uint64_t max_state_bytes = kDefaultMaxStateBytes;
};

// Where a frame is in the stream, from its tag to behind its last byte.
struct FrameRange {
  uint64_t offset = 0;
  uint64_t end = 0;
};

class Event {
 public:
  Event(const KnownSchema& schema, uint64_t timestamp_ns, FrameRange range, const Value* values,
        const Pools& pools)
      : schema_(schema),
        timestamp_ns_(timestamp_ns),
        range_(range),
        values_(values),
        pools_(pools) {}

  const KnownSchema& schema() const { return schema_; }
  bool has_timestamp() const { return schema_.has_timestamp(); }
  // For an event without time the base: the time of the one before it in its sub-stream, or 0.
  // There is no order across sub-streams (FORMAT.md "Time").
  uint64_t timestamp_ns() const { return timestamp_ns_; }
  FrameRange range() const { return range_; }

  size_t size() const { return schema_.fields(); }
  const Value& operator[](size_t field) const { return values_[field]; }
  // Null when the schema has no such field. By name costs a search: look up the position once per
  // schema when it matters.
  const Value* find(std::string_view field_name) const {
    const std::optional<size_t> field = schema_.find(field_name);
    return field ? &values_[*field] : nullptr;
  }
  // What is defined as of here.
  const Pools& pools() const { return pools_; }
  // The text of a String or PooledString; absent for other types, absent values and unknown ids.
  std::optional<std::string_view> text(size_t field) const;
  // The stack of StackFrames or PooledStackFrames; absent as text().
  std::optional<StackView> stack(size_t field) const;

 private:
  const KnownSchema& schema_;
  uint64_t timestamp_ns_;
  FrameRange range_;
  const Value* values_;
  const Pools& pools_;
};

struct AnnotationsView {
  uint64_t type_id = 0;  // as in the file: may be unknown, and beyond 65,535
  bool known = false;    // the type is there, and has these annotations now
  uint16_t count = 0;
  Bytes entries;
  // Calls f(field_index, key, value) for each, in order.
  template <class F>
  void for_each(F&& f) const {
    ByteReader reader(entries);
    const auto text = [&](size_t size) {
      const Bytes own = reader.bytes(size);
      return std::string_view(reinterpret_cast<const char*>(own.data()), own.size());
    };
    for (uint32_t i = 0; i < count; ++i) {
      const uint16_t field = reader.u16();
      const std::string_view key = text(reader.u16());
      const std::string_view value = text(reader.u32());
      f(field, key, value);
    }
  }
};

// To be derived from; a visitor hides the calls that it wants. They are called by static type.
struct Visitor {
  // A header, also the one at the start. During the call schemas() and pools() of the decoder still
  // hold what the previous sub-stream ended with.
  void on_header(uint64_t offset) { (void)offset; }
  // Also for a schema that is repeated.
  void on_schema(FrameRange range, const KnownSchema& schema) { (void)range, (void)schema; }
  void on_event(const Event& event) { (void)event; }
  void on_strings(FrameRange range, StringPoolView strings) { (void)range, (void)strings; }
  void on_stacks(FrameRange range, StackPoolView stacks) { (void)range, (void)stacks; }
  void on_reset(FrameRange range, uint64_t timestamp_ns) { (void)range, (void)timestamp_ns; }
  void on_annotations(FrameRange range, const AnnotationsView& notes) { (void)range, (void)notes; }
  // Asked after each frame; false ends decode() behind it.
  bool wants_more() const { return true; }
};

enum class DecodeState : uint8_t {
  kEnd,       // all bytes were whole frames
  kNeedMore,  // the bytes end within a frame: call again with it and more behind
  kStopped,   // the visitor wants no more
  kFailed,    // problem() says why; the decoder takes nothing more
};

struct Decoded {
  DecodeState state = DecodeState::kEnd;
  size_t bytes = 0;  // whole frames taken from the front
  // kNeedMore: bytes that the unfinished frame has at least, from its first. Calling with fewer
  // finds nothing new.
  uint64_t need = 0;
};

class Decoder {
 public:
  explicit Decoder(DecoderOptions options = {}) : options_(options) {}

  // Takes whole frames from the front of `bytes`, which continue where the last call ended.
  template <class V>
  Decoded decode(Bytes bytes, V& visitor);
  // What is wrong when the stream ends here: with an unfinished frame, or without any header.
  // `rest` is what the last decode() left. Absent when all is well.
  std::optional<Problem> finish(Bytes rest);

  const std::optional<Problem>& problem() const { return problem_; }
  uint64_t offset() const { return offset_; }  // in the stream, behind the last whole frame
  uint64_t sub_streams() const { return sub_streams_; }
  uint64_t frames() const { return frames_; }  // of all kinds, headers included
  uint64_t events() const { return events_; }
  uint64_t time_base_ns() const { return base_; }
  const SchemaTable& schemas() const { return schemas_; }
  const Pools& pools() const { return pools_; }

  // Continues at another header of the same stream, behind damage: `offset` is where it is.
  void resume_at(uint64_t offset);

 private:
  struct Other {  // a frame that is no event
    FrameTag tag{};
    const uint8_t* end = nullptr;
    const KnownSchema* schema = nullptr;
    uint64_t number = 0;  // time of a reset, type_id of annotations
    uint32_t count = 0;
    Bytes entries;
    bool known = false;
  };
  struct EventStep {
    const KnownSchema* schema = nullptr;
    const uint8_t* end = nullptr;  // null: need_ or problem_ says why
    uint64_t timestamp_ns = 0;
  };

  EventStep read_event(const uint8_t* at, const uint8_t* end) {
    if (end - at >= kFastMargin) [[likely]] {
      const KnownSchema* const schema = schemas_.find(load_le<uint16_t>(at + 1));
      if (schema != nullptr) [[likely]] {
        const bool timed = schema->has_timestamp();
        const uint64_t delta = load_le<uint32_t>(at + 2) >> 8;
        const uint64_t time = base_ + delta;
        const uint8_t* const behind = read_fields_fast(
            schema->type_bytes(), at + (timed ? kTimedEventHeadBytes : kEventHeadBytes), end,
            values_.get());
        if (behind != nullptr && time >= base_ &&
            static_cast<uint64_t>(behind - at) <= options_.max_frame_bytes) [[likely]] {
          if (timed) base_ = time;
          return {schema, behind, base_};
        }
      }
    }
    return read_event_carefully(at, end);
  }
  EventStep read_event_carefully(const uint8_t* at, const uint8_t* end);

  bool read_other(const uint8_t* at, const uint8_t* end, Other& out);
  bool read_header(FrameReader& reader);
  bool read_schema(FrameReader& reader, Other& out);
  // The entries of a pool frame, each of as many elements as it says.
  bool read_pool(FrameReader& reader, uint64_t element_bytes, Other& out);
  bool read_strings(FrameReader& reader, Other& out);
  bool read_stacks(FrameReader& reader, Other& out);
  bool read_annotations(FrameReader& reader, Other& out);
  void start_sub_stream();
  // Turns what stopped `reader` into need_ or problem_.
  void note_trouble(const FrameReader& reader);

  DecoderOptions options_;
  uint64_t base_ = 0;
  std::unique_ptr<Value[]> values_;
  SchemaTable schemas_;
  Pools pools_;

  uint64_t offset_ = 0;
  uint64_t sub_streams_ = 0;
  uint64_t frames_ = 0;
  uint64_t events_ = 0;
  uint64_t need_ = 0;
  std::optional<Problem> problem_;
  size_t value_places_ = 0;
  std::vector<uint32_t> name_offsets_;  // of the schema that is being read
  std::vector<uint8_t> types_;
};

template <class V>
Decoded Decoder::decode(Bytes bytes, V& visitor) {
  if (problem_) return {DecodeState::kFailed, 0, 0};
  const uint8_t* const begin = bytes.data();
  const uint8_t* const end = begin + bytes.size();
  const uint8_t* at = begin;
  const uint64_t begin_offset = offset_;
  const auto taken = [&](DecodeState state, uint64_t need = 0) {
    return Decoded{state, static_cast<size_t>(at - begin), need};
  };
  while (at != end) {
    const uint8_t* behind = nullptr;
    if (*at == static_cast<uint8_t>(FrameTag::kEvent) && sub_streams_ != 0) [[likely]] {
      const EventStep step = read_event(at, end);
      if (step.end == nullptr) [[unlikely]]
        return taken(problem_ ? DecodeState::kFailed : DecodeState::kNeedMore, need_);
      behind = step.end;
      ++events_;
      const FrameRange range{offset_, begin_offset + static_cast<uint64_t>(behind - begin)};
      visitor.on_event(Event(*step.schema, step.timestamp_ns, range, values_.get(), pools_));
    } else {
      Other other;
      if (!read_other(at, end, other))
        return taken(problem_ ? DecodeState::kFailed : DecodeState::kNeedMore, need_);
      behind = other.end;
      const FrameRange range{offset_, begin_offset + static_cast<uint64_t>(behind - begin)};
      switch (other.tag) {
        case FrameTag::kHeader:
          visitor.on_header(offset_);
          start_sub_stream();
          break;
        case FrameTag::kSchema:
          visitor.on_schema(range, *other.schema);
          break;
        case FrameTag::kStringPool:
          visitor.on_strings(range, StringPoolView(other.count, other.entries));
          break;
        case FrameTag::kStackPool:
          visitor.on_stacks(range, StackPoolView(other.count, other.entries));
          break;
        case FrameTag::kTimestampReset:
          visitor.on_reset(range, other.number);
          break;
        case FrameTag::kAnnotations:
          visitor.on_annotations(range, {other.number, other.known,
                                         static_cast<uint16_t>(other.count), other.entries});
          break;
        case FrameTag::kEvent:
          break;
      }
    }
    ++frames_;
    at = behind;
    offset_ = begin_offset + static_cast<uint64_t>(at - begin);
    if (!visitor.wants_more()) return taken(DecodeState::kStopped);
  }
  return taken(DecodeState::kEnd);
}

}  // namespace collect::dial9
