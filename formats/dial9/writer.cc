#include "formats/dial9/writer.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace collect::dial9 {
namespace {

constexpr size_t kFirstBufferBytes = 4096;
constexpr size_t kMaxAnnotationsPerFrame = 0xFFFF;

// Longest event that is written; the rest of kMaxFrameBytes is for values of fixed size, which are
// not counted one by one.
constexpr uint64_t kMaxEventBytes = kMaxFrameBytes - (uint64_t{1} << 20);

}  // namespace

std::string_view to_text(Refusal refusal) {
  switch (refusal) {
    case Refusal::kNone:
      return "nothing was refused";
    case Refusal::kUnknownType:
      return "the event type is not defined here";
    case Refusal::kTime:
      return "the type has a time and none was given, or the other way round";
    case Refusal::kWrongValue:
      return "a value is not of the type of the schema's next field";
    case Refusal::kMissing:
      return "fields are without value, or a list or map was not ended";
    case Refusal::kNesting:
      return "lists and maps are nested too deep, or an end has no begin";
    case Refusal::kTooLong:
      return "a value or an event is too long";
    case Refusal::kNoRoom:
      return "the buffer is full";
    case Refusal::kNotOpen:
      return "no event is open, or one is open already";
    case Refusal::kSink:
      return "the sink has failed";
  }
  return "unknown";
}

Encoder::Encoder() : grows_(true) {
  (void)make_room(kFirstBufferBytes);
  (void)begin_stream();
}

Encoder::Encoder(MutableBytes buffer) {
  set_buffer(buffer.data(), buffer.size());
  (void)begin_stream();
}

Encoder::Encoder(ByteSink& sink, size_t flush_bytes)
    : grows_(true), sink_(&sink), flush_bytes_(flush_bytes) {
  (void)make_room(flush_bytes + kFirstBufferBytes);
  (void)begin_stream();
}

Result<EventType> Encoder::define(const Schema& schema) {
  COLLECT_TRY(validate(schema));
  if (index_by_id_.size() <= schema.type_id)
    index_by_id_.resize(size_t{schema.type_id} + 1, kNoType);
  uint32_t& index = index_by_id_[schema.type_id];
  if (index != kNoType) {
    if (type_frames_[index]->schema == schema) return EventType{index};
    return Error{Code::kAlreadyExists,
                 fmt::format("type_id {} has another schema already", schema.type_id)};
  }
  auto made = std::make_unique<TypeFrames>();
  made->schema = schema;
  made->fields.reserve(schema.fields.size() + 1);
  for (const Field& field : schema.fields) {
    made->fields.push_back(static_cast<uint8_t>(static_cast<uint8_t>(field.type) |
                                                (field.optional ? kOptionalBit : 0)));
  }
  made->fields.push_back(kNoMoreFields);
  append_schema_frame(schema, made->frames);
  index = static_cast<uint32_t>(types_.size());
  types_.push_back({0, made->fields.data(), schema.type_id, schema.has_timestamp});
  type_frames_.push_back(std::move(made));
  return EventType{index};
}

Status Encoder::annotate(EventType type, const std::vector<Annotation>& annotations) {
  if (type.index >= types_.size())
    return Error{Code::kInvalidArgument, std::string(to_text(Refusal::kUnknownType))};
  TypeFrames& frames = *type_frames_[type.index];
  for (const Annotation& annotation : annotations) {
    COLLECT_TRY(validate(annotation));
    if (annotation.field_index >= frames.schema.fields.size()) {
      return Error{Code::kInvalidArgument, fmt::format("type {} has no field {}",
                                                       frames.schema.name, annotation.field_index)};
    }
  }
  for (size_t from = 0; from < annotations.size(); from += kMaxAnnotationsPerFrame) {
    const size_t count = std::min(kMaxAnnotationsPerFrame, annotations.size() - from);
    const auto first = annotations.begin() + static_cast<ptrdiff_t>(from);
    append_annotations_frame(frames.schema.type_id, {first, first + static_cast<ptrdiff_t>(count)},
                             frames.frames);
  }
  types_[type.index].generation = 0;
  return {};
}

bool Encoder::begin_stream() {
  if (open_) return say_no(Refusal::kNotOpen);
  if (!make_room(kHeaderBytes)) return false;
  std::memcpy(at_, kMagic, sizeof kMagic);
  at_[sizeof kMagic] = kFormatVersion;
  at_ += kHeaderBytes;
  ++generation_;
  base_ = 0;
  strings_.restart();
  stacks_.restart();
  pools_pending_ = false;
  return true;
}

bool Encoder::announce(EventType type) {
  if (open_) return say_no(Refusal::kNotOpen);
  if (type.index >= types_.size()) return say_no(Refusal::kUnknownType);
  if (generation_ == 0 && !begin_stream()) return false;
  return types_[type.index].generation == generation_ || write_type_frames(type.index);
}

bool Encoder::write_pools() {
  if (open_) return say_no(Refusal::kNotOpen);
  return !pools_pending_ || insert_pools(at_);
}

void Encoder::begin_event(EventType type) {
  begin_carefully(type, false, 0);
}

// Header, schema and annotations go into the buffer as part of the event, so that a full buffer
// refuses all of it or nothing.
void Encoder::begin_carefully(EventType type, bool timed, uint64_t timestamp_ns) {
  if (open_) {
    refuse(Refusal::kNotOpen);
    return;
  }
  if (generation_ == 0) (void)begin_stream();
  open_ = true;
  start_ = at_;
  start_base_ = base_;
  if (generation_ == 0) return refuse(refusal_);
  if (!sink_status_.ok()) return refuse(Refusal::kSink);
  if (type.index >= types_.size()) return refuse(Refusal::kUnknownType);
  if (types_[type.index].has_timestamp != timed) return refuse(Refusal::kTime);
  if (types_[type.index].generation != generation_) {
    announced_ = type.index;
    announced_in_ = type_frames_[type.index]->partly_in;
    announced_from_ = type_frames_[type.index]->written;
    if (!write_type_frames(type.index)) return refuse(refusal_);
  }
  const Type& known = types_[type.index];
  next_ = known.fields;
  if (!timed) {
    if (!make_room(kEventHeadBytes)) return refuse(refusal_);
    *at_ = static_cast<uint8_t>(FrameTag::kEvent);
    store_le(at_ + 1, known.type_id);
    at_ += kEventHeadBytes;
    return;
  }
  const bool reset = timestamp_ns < base_ || timestamp_ns - base_ > kMaxTimestampDelta;
  const size_t head = kTimedEventHeadBytes + (reset ? kResetBytes : 0);
  if (!make_room(head)) return refuse(refusal_);
  if (room() >= kFastRoom) return write_event_head(known, timestamp_ns);
  // The fast way stores two bytes more than it keeps; near the end of the buffer they are not ours.
  uint8_t scratch[kFastRoom];
  uint8_t* const place = at_;
  at_ = scratch;
  write_event_head(known, timestamp_ns);
  std::memcpy(place, scratch, head);
  at_ = place + head;
}

bool Encoder::end_carefully() {
  if (!open_) return say_no(Refusal::kNotOpen);
  if (*next_ != kNoMoreFields) {
    if (*next_ != kNothingFits) refusal_ = Refusal::kMissing;
    abort_event();
    return false;
  }
  if (pools_pending_ && !insert_pools(start_)) {
    abort_event();
    return false;
  }
  open_ = false;
  announced_ = kNoType;
  next_ = kNothingFitsTypes;
  ++events_;
  if (sink_ != nullptr && at_ >= flush_at_) (void)flush();
  return true;
}

void Encoder::abort_event() {
  if (!open_) return;
  at_ = start_;
  base_ = start_base_;
  open_ = false;
  next_ = kNothingFitsTypes;
  dynamics_.clear();
  if (announced_ == kNoType) return;
  types_[announced_].generation = 0;
  type_frames_[announced_]->partly_in = announced_in_;
  type_frames_[announced_]->written = announced_from_;
  announced_ = kNoType;
}

void Encoder::clear() {
  if (open_) return;
  taken_ += static_cast<uint64_t>(at_ - begin_);
  at_ = begin_;
}

std::vector<uint8_t> Encoder::take() {
  const Bytes all = bytes();
  std::vector<uint8_t> copy(all.begin(), all.end());
  clear();
  return copy;
}

Status Encoder::flush() {
  if (open_) return Error{Code::kInvalidArgument, "an event is open"};
  if (!write_pools()) return Error{Code::kNoSpace, std::string(to_text(refusal_))};
  if (sink_ == nullptr || at_ == begin_) return sink_status_;
  if (sink_status_.ok()) sink_status_ = sink_->write(bytes());
  if (sink_status_.ok()) {
    clear();
  } else {
    // No type matches any more, so that every event takes the careful way and is refused there.
    for (Type& type : types_) type.generation = 0;
  }
  return sink_status_;
}

bool Encoder::write_type_frames(uint32_t index) {
  TypeFrames& frames = *type_frames_[index];
  const size_t from = frames.partly_in == generation_ ? frames.written : 0;
  const size_t bytes = frames.frames.size() - from;
  if (!make_room(bytes)) return false;
  std::memcpy(at_, frames.frames.data() + from, bytes);
  at_ += bytes;
  frames.partly_in = generation_;
  frames.written = frames.frames.size();
  types_[index].generation = generation_;
  return true;
}

// Frames of the pending entries, in front of what is at `before`: entries come before their
// first use, and an event's strings are in one frame.
bool Encoder::insert_pools(uint8_t* before) {
  const size_t strings = strings_.frame_bytes();
  const size_t stacks = stacks_.frame_bytes();
  const size_t before_offset = static_cast<size_t>(before - begin_);
  if (!make_room(strings + stacks)) return false;
  before = begin_ + before_offset;
  std::memmove(before + strings + stacks, before, static_cast<size_t>(at_ - before));
  if (strings != 0) strings_.write_frame(before);
  if (stacks != 0) stacks_.write_frame(before + strings);
  at_ += strings + stacks;
  strings_.written();
  stacks_.written();
  pools_pending_ = false;
  return true;
}

bool Encoder::make_room(uint64_t bytes) {
  if (bytes <= room()) return true;
  if (!grows_) return say_no(Refusal::kNoRoom);
  const size_t used = static_cast<size_t>(at_ - begin_);
  const size_t start = static_cast<size_t>(start_ - begin_);
  const size_t capacity = std::max<size_t>(used * 2, used + static_cast<size_t>(bytes) + kFastRoom);
  auto* const larger = static_cast<uint8_t*>(std::realloc(own_.get(), capacity));
  COLLECT_CHECK(larger != nullptr);
  (void)own_.release();  // realloc has taken it
  own_.reset(larger);
  set_buffer(own_.get(), capacity);
  at_ = begin_ + used;
  start_ = begin_ + start;
  return true;
}

void Encoder::set_buffer(uint8_t* begin, size_t bytes) {
  begin_ = at_ = start_ = begin;
  end_ = begin + bytes;
  flush_at_ = sink_ != nullptr ? begin + std::min(flush_bytes_, bytes) : end_;
}

// The event continues taking values and refuses them; end_event() reports that.
void Encoder::refuse(Refusal refusal) {
  refusal_ = refusal;
  next_ = kNothingFitsTypes;
  dynamics_.clear();
}

bool Encoder::say_no(Refusal refusal) {
  refusal_ = refusal;
  return false;
}

// ---- values of optional fields, elements of lists and maps, and values that do not fit

// The place of a value of so many bytes, with what is before it written: the presence byte of
// an optional field, or the type of an element. Null when it is refused.
uint8_t* Encoder::place(FieldType type, uint64_t bytes) {
  const uint8_t wanted = *next_;
  const uint8_t given = static_cast<uint8_t>(type);
  const bool optional = wanted == (given | kOptionalBit);
  const bool element = wanted == kInDynamic;
  if (wanted != given && !optional && !element) {
    if (!open_) {
      refusal_ = Refusal::kNotOpen;
    } else if (wanted != kNothingFits) {
      refuse(Refusal::kWrongValue);
    }
    return nullptr;
  }
  if (bytes > kMaxEventBytes - static_cast<uint64_t>(at_ - start_)) {
    refuse(Refusal::kTooLong);
    return nullptr;
  }
  if (!make_room(bytes + 1)) {
    // Without a byte before the value, the value may still fit exactly.
    if (optional || element || !make_room(bytes)) {
      refuse(refusal_);
      return nullptr;
    }
  }
  if (optional) *at_++ = 1;
  if (element) {
    *at_++ = given;
    ++dynamics_.back().values;
  } else {
    ++next_;
  }
  uint8_t* const placed = at_;
  at_ += bytes;
  return placed;
}

void Encoder::put_varint_carefully(uint64_t value) {
  if (uint8_t* const at = place(FieldType::kVarint, uleb128_size(value))) write_uleb128(at, value);
}

void Encoder::put_fixed_carefully(FieldType type, const void* value, size_t bytes) {
  if (uint8_t* const at = place(type, bytes)) std::memcpy(at, value, bytes);
}

void Encoder::put_block(FieldType type, Bytes content, uint32_t item_bytes) {
  if (type == FieldType::kStackFrames && !take_elements(content.size() / item_bytes)) return;
  uint8_t* const at = place(type, 4 + uint64_t{content.size()});
  if (at == nullptr) return;
  store_le(at, static_cast<uint32_t>(content.size() / item_bytes));
  if (!content.empty()) std::memcpy(at + 4, content.data(), content.size());
}

// Whether a value may have so many; if not, the event is refused.
bool Encoder::take_elements(uint64_t count) {
  if (count <= kMaxWrittenElements || *next_ == kNothingFits) return true;
  refuse(Refusal::kTooLong);
  return false;
}

void Encoder::put_string_map(std::span<const StringPair> pairs) {
  if (!take_elements(pairs.size())) return;
  uint64_t bytes = 4;
  for (const StringPair& pair : pairs) bytes += 8 + pair.key.size() + pair.value.size();
  uint8_t* at = place(FieldType::kStringMap, bytes);
  if (at == nullptr) return;
  store_le(at, static_cast<uint32_t>(pairs.size()));
  at += 4;
  for (const StringPair& pair : pairs) {
    for (const std::string_view text : {pair.key, pair.value}) {
      store_le(at, static_cast<uint32_t>(text.size()));
      if (!text.empty()) std::memcpy(at + 4, text.data(), text.size());
      at += 4 + text.size();
    }
  }
}

void Encoder::put_absent() {
  const uint8_t wanted = *next_;
  if (wanted == kInDynamic || (wanted & kOptionalBit) == 0) {
    refuse(open_ ? Refusal::kWrongValue : Refusal::kNotOpen);
    return;
  }
  if (wanted == kNothingFits) {
    if (!open_) refusal_ = Refusal::kNotOpen;
    return;
  }
  if (!make_room(1)) {
    refuse(refusal_);
    return;
  }
  *at_++ = 0;
  ++next_;
}

uint32_t Encoder::intern(std::string_view text) {
  const std::optional<uint32_t> id = strings_.intern(text);
  pools_pending_ = pools_pending_ || strings_.has_pending();
  return id.value_or(kInvalidPoolId);
}

uint32_t Encoder::intern_stack(std::span<const uint64_t> addresses) {
  const Bytes bytes = as_bytes(addresses);
  const std::optional<uint32_t> id =
      stacks_.intern({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  pools_pending_ = pools_pending_ || stacks_.has_pending();
  return id.value_or(kInvalidPoolId);
}

void Encoder::put_pool_id(FieldType type, uint32_t id) {
  if (id == kInvalidPoolId && open_ && *next_ != kNothingFits) {
    refuse(Refusal::kTooLong);
    return;
  }
  put_fixed(type, id);
}

void Encoder::open_dynamic(FieldType type) {
  if (dynamics_.size() == kMaxWrittenNesting) {
    refuse(Refusal::kNesting);
    return;
  }
  const bool outermost = dynamics_.empty();
  uint8_t* const at = place(type, 4);
  if (at == nullptr) return;
  dynamics_.push_back({static_cast<size_t>(at - begin_), 0, type == FieldType::kDynamicMap});
  if (!outermost) return;
  field_after_dynamic_ = next_;
  next_ = kInDynamicTypes;
}

void Encoder::close_dynamic(bool is_map) {
  if (*next_ == kNothingFits) {
    if (!open_) refusal_ = Refusal::kNotOpen;
    return;
  }
  if (dynamics_.empty() || dynamics_.back().is_map != is_map) {
    refuse(Refusal::kNesting);
    return;
  }
  const OpenDynamic closed = dynamics_.back();
  if (is_map && closed.values % 2 != 0) {  // a key without value
    refuse(Refusal::kMissing);
    return;
  }
  const uint64_t count = is_map ? closed.values / 2 : closed.values;
  if (!take_elements(count)) return;
  store_le(begin_ + closed.count_offset, static_cast<uint32_t>(count));
  dynamics_.pop_back();
  if (dynamics_.empty()) next_ = field_after_dynamic_;
}

}  // namespace collect::dial9
