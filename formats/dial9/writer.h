// Encodes dial9. An event is begun, its values are put in the order of the schema's fields, and it
// is ended; each put is checked against the schema. After an error in between (a value of another
// type, one too few, no room), end_event() returns false and the stream is as if the event had not
// been begun: no reader ever sees a part of it.
//
//   Encoder out(sink);
//   const EventType poll = *out.define({0, "PollStart", true, {{"worker", FieldType::kVarint}}});
//   out.begin_event(poll, now_ns);
//   out.put_varint(3);
//   if (!out.end_event()) report(to_text(out.refusal()));
//
// What an event needs goes before it by itself: its schema and annotations when the sub-stream does
// not have them, a timestamp reset, new pool entries in one frame. No allocation per event, except
// where a buffer grows or a string is new to a pool. One thread at a time.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "formats/core/byte_sink.h"
#include "formats/core/bytes.h"
#include "formats/core/encoding/leb128.h"
#include "formats/core/result.h"
#include "formats/dial9/interner.h"
#include "formats/dial9/layout.h"
#include "formats/dial9/schema.h"

namespace collect::dial9 {

// A type as its Encoder knows it; of no use with another one.
struct EventType {
  uint32_t index = 0;
};

struct StringPair {
  std::string_view key;
  std::string_view value;
};

enum class Refusal : uint8_t {
  kNone,
  kUnknownType,  // the EventType is of no define() here
  kTime,         // a time for a type without one, or none for a type with one
  kWrongValue,   // a value where the schema has another type, or no more field
  kMissing,      // fields without value, or a list or map that was not ended
  kNesting,      // deeper than kMaxWrittenNesting, or an end without its begin
  kTooLong,      // beyond kMaxFrameBytes or kMaxWrittenElements, or no pool id left
  kNoRoom,       // the caller's buffer is full: take bytes(), clear(), encode the event again
  kNotOpen,      // no event was begun, or one was begun within another
  kSink,         // the sink has failed: sink_status() says how
};

std::string_view to_text(Refusal refusal);

class Encoder {
 public:
  // A sink gets whole frames whenever this many bytes have come together, and at flush().
  static constexpr size_t kDefaultFlushBytes = size_t{64} << 10;

  Encoder();                              // a buffer of its own that grows
  explicit Encoder(MutableBytes buffer);  // the caller's, which stays where it is and is never left
  explicit Encoder(ByteSink& sink, size_t flush_bytes = kDefaultFlushBytes);
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  // A schema that is defined again gives its first type. kAlreadyExists: the id has another schema;
  // kInvalidArgument: see validate().
  Result<EventType> define(const Schema& schema);
  // Adds annotations, which follow the schema. kInvalidArgument: see validate(), or no such field.
  Status annotate(EventType type, const std::vector<Annotation>& annotations);

  // A header within the stream: what follows does not depend on what came before. Types stay
  // defined and are written again when used; pool ids start over, ids from before are void. False
  // without room for it, or within an event.
  [[nodiscard]] bool begin_stream();
  // Writes the type's schema and annotations now, if this sub-stream does not have them.
  [[nodiscard]] bool announce(EventType type);
  // Writes the entries that were interned and that no event has taken along yet.
  [[nodiscard]] bool write_pools();

  void begin_event(EventType type, uint64_t timestamp_ns);
  void begin_event(EventType type);  // of a type without timestamp
  [[nodiscard]] bool end_event();
  void abort_event();

  void put_varint(uint64_t value);
  void put_i64(int64_t value) { put_fixed(FieldType::kI64, value); }
  void put_f64(double value) { put_fixed(FieldType::kF64, value); }
  void put_bool(bool value) { put_fixed(FieldType::kBool, static_cast<uint8_t>(value)); }
  void put_u8(uint8_t value) { put_fixed(FieldType::kU8, value); }
  void put_u16(uint16_t value) { put_fixed(FieldType::kU16, value); }
  void put_u32(uint32_t value) { put_fixed(FieldType::kU32, value); }
  // Text should be UTF-8: some decoders refuse the event otherwise. It is not looked at here.
  void put_string(std::string_view text) { put_block(FieldType::kString, as_bytes(text), 1); }
  void put_bytes(Bytes bytes) { put_block(FieldType::kBytes, bytes, 1); }
  void put_stack(std::span<const uint64_t> addresses) {
    put_block(FieldType::kStackFrames, as_bytes(addresses), 8);
  }
  void put_string_map(std::span<const StringPair> pairs);
  // The optional field has no value.
  void put_absent();

  // Ids of contents, for put_pooled_*_id() up to the next begin_stream(). kInvalidPoolId, which any
  // put refuses, when there is no id left or the content has 2 GiB or more.
  static constexpr uint32_t kInvalidPoolId = 0xFFFFFFFF;
  uint32_t intern(std::string_view text);
  uint32_t intern_stack(std::span<const uint64_t> addresses);
  void put_pooled_string(std::string_view text) { put_pooled_string_id(intern(text)); }
  void put_pooled_stack(std::span<const uint64_t> addresses) {
    put_pooled_stack_id(intern_stack(addresses));
  }
  void put_pooled_string_id(uint32_t id) { put_pool_id(FieldType::kPooledString, id); }
  void put_pooled_stack_id(uint32_t id) { put_pool_id(FieldType::kPooledStackFrames, id); }

  // Between begin and end each put adds an element with its type, in a map keys and values by
  // turns; lists and maps may be nested.
  void begin_list() { open_dynamic(FieldType::kDynamicList); }
  void end_list() { close_dynamic(false); }
  void begin_map() { open_dynamic(FieldType::kDynamicMap); }
  void end_map() { close_dynamic(true); }

  // Whole frames that no sink has taken; valid until the next call that is not const.
  Bytes bytes() const { return {begin_, event_open() ? start_ : at_}; }
  // Forgets these bytes, since they have been taken; the sub-stream continues. Not within an event.
  void clear();
  std::vector<uint8_t> take();  // both, as a copy
  // Hands everything to the sink, with pending pool entries. Without a sink it only writes these.
  Status flush();

  Refusal refusal() const { return refusal_; }  // why the last call that says false did so
  const Status& sink_status() const { return sink_status_; }
  uint64_t events() const { return events_; }
  uint64_t sub_streams() const { return generation_; }
  uint64_t total_bytes() const { return taken_ + bytes().size(); }

 private:
  // Values beside those of a field's type byte, so that one comparison decides all.
  static constexpr uint8_t kNoMoreFields = 0;    // the end of each schema's types
  static constexpr uint8_t kInDynamic = 0xFE;    // any element will do
  static constexpr uint8_t kNothingFits = 0xFF;  // no event is open, or it has been refused
  static constexpr uint8_t kInDynamicTypes[1] = {kInDynamic};
  static constexpr uint8_t kNothingFitsTypes[1] = {kNothingFits};
  // Room that the fast ways ask for: a reset, an event's head, and any value of fixed size.
  static constexpr size_t kFastRoom = 32;

  struct Free {
    void operator()(uint8_t* buffer) const { std::free(buffer); }
  };
  struct Type {
    uint64_t generation = 0;  // of the sub-stream that has all of `frames`
    const uint8_t* fields = nullptr;
    uint16_t type_id = 0;
    bool has_timestamp = false;
  };
  struct TypeFrames {
    Schema schema;
    std::vector<uint8_t> fields;  // type bytes, then kNoMoreFields
    std::vector<uint8_t> frames;  // schema, annotations
    uint64_t partly_in = 0;       // sub-stream that has the first `written` of these
    size_t written = 0;
  };
  struct OpenDynamic {
    size_t count_offset;
    uint64_t values;
    bool is_map;
  };

  template <class T>
  static Bytes as_bytes(const T& items) {
    return {reinterpret_cast<const uint8_t*>(items.data()), items.size() * sizeof(items[0])};
  }
  bool event_open() const { return open_; }
  size_t room() const { return static_cast<size_t>(end_ - at_); }
  template <class T>
  void put_fixed(FieldType type, T value);
  void put_varint_carefully(uint64_t value);
  void put_fixed_carefully(FieldType type, const void* value, size_t bytes);
  void put_block(FieldType type, Bytes content, uint32_t item_bytes);
  bool take_elements(uint64_t count);
  void put_pool_id(FieldType type, uint32_t id);
  void open_dynamic(FieldType type);
  void close_dynamic(bool is_map);
  uint8_t* place(FieldType type, uint64_t bytes);
  void begin_carefully(EventType type, bool timed, uint64_t timestamp_ns);
  void write_event_head(const Type& type, uint64_t timestamp_ns);
  bool end_carefully();
  bool write_type_frames(uint32_t index);
  bool insert_pools(uint8_t* before);
  bool make_room(uint64_t bytes);
  void set_buffer(uint8_t* begin, size_t bytes);
  void refuse(Refusal refusal);
  bool say_no(Refusal refusal);

  uint8_t* at_ = nullptr;                    // where the next byte goes
  uint8_t* end_ = nullptr;                   // of the buffer
  const uint8_t* next_ = kNothingFitsTypes;  // type byte of the next field
  uint64_t base_ = 0;
  uint8_t* start_ = nullptr;     // of the open event, with all that goes before it
  uint8_t* flush_at_ = nullptr;  // reaching it, end_event() looks at the sink
  uint64_t generation_ = 0;      // counts the headers
  uint64_t events_ = 0;
  bool open_ = false;
  bool pools_pending_ = false;
  Refusal refusal_ = Refusal::kNone;
  std::vector<Type> types_;

  uint64_t start_base_ = 0;
  const uint8_t* field_after_dynamic_ = nullptr;
  std::vector<OpenDynamic> dynamics_;
  uint32_t announced_ = kNoType;  // type whose frames were written within the open event
  uint64_t announced_in_ = 0;     // and what its TypeFrames said before
  size_t announced_from_ = 0;
  static constexpr uint32_t kNoType = 0xFFFFFFFF;
  uint8_t* begin_ = nullptr;
  std::unique_ptr<uint8_t, Free> own_;  // malloc: growing it moves pages, not bytes
  bool grows_ = false;
  ByteSink* sink_ = nullptr;
  size_t flush_bytes_ = 0;
  Status sink_status_;
  uint64_t taken_ = 0;
  std::vector<std::unique_ptr<TypeFrames>> type_frames_;
  std::vector<uint32_t> index_by_id_;
  Interner strings_{FrameTag::kStringPool, 1};
  Interner stacks_{FrameTag::kStackPool, 8};
};

inline void Encoder::write_event_head(const Type& type, uint64_t timestamp_ns) {
  uint64_t delta = timestamp_ns - base_;
  if (timestamp_ns < base_ || delta > kMaxTimestampDelta) {
    *at_ = static_cast<uint8_t>(FrameTag::kTimestampReset);
    store_le(at_ + 1, timestamp_ns);
    at_ += kResetBytes;
    delta = 0;
  }
  base_ = timestamp_ns;
  store_le(at_,
           static_cast<uint64_t>(FrameTag::kEvent) | uint64_t{type.type_id} << 8 | delta << 24);
  at_ += kTimedEventHeadBytes;
}

inline void Encoder::begin_event(EventType type, uint64_t timestamp_ns) {
  if (type.index < types_.size() && !open_ && room() >= kFastRoom) [[likely]] {
    const Type& known = types_[type.index];
    if (known.generation == generation_ && known.has_timestamp) [[likely]] {
      open_ = true;
      start_ = at_;
      start_base_ = base_;
      next_ = known.fields;
      write_event_head(known, timestamp_ns);
      return;
    }
  }
  begin_carefully(type, true, timestamp_ns);
}

inline bool Encoder::end_event() {
  if (*next_ == kNoMoreFields && !pools_pending_ && at_ < flush_at_) [[likely]] {
    open_ = false;
    announced_ = kNoType;
    next_ = kNothingFitsTypes;
    ++events_;
    return true;
  }
  return end_carefully();
}

inline void Encoder::put_varint(uint64_t value) {
  if (*next_ == static_cast<uint8_t>(FieldType::kVarint) && room() >= kFastRoom) [[likely]] {
    ++next_;
    at_ += write_uleb128(at_, value);
    return;
  }
  put_varint_carefully(value);
}

template <class T>
inline void Encoder::put_fixed(FieldType type, T value) {
  if (*next_ == static_cast<uint8_t>(type) && room() >= kFastRoom) [[likely]] {
    ++next_;
    store_le(at_, value);
    at_ += sizeof value;
    return;
  }
  put_fixed_carefully(type, &value, sizeof value);
}

}  // namespace collect::dial9
