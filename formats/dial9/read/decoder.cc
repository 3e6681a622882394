#include "formats/dial9/read/decoder.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>

namespace collect::dial9 {
namespace {

// Sentences for what stopped a frame; `detail` is what FrameReader::fail was given.
std::string sentence_of(Rule rule, uint64_t detail) {
  const std::string number = std::to_string(detail);
  switch (rule) {
    case Rule::kHeader:
      return "this is no dial9 header";
    case Rule::kVersion:
      return fmt::format("the header says version {}, only {} is known", number, kFormatVersion);
    case Rule::kTruncated:
      return fmt::format("the stream ends within a frame, which has at least {} bytes", number);
    case Rule::kTag:
      return "no frame has the tag " + number;
    case Rule::kName:
      return "a name is not UTF-8";
    case Rule::kFieldType:
      return fmt::format("field type {} does not exist", number);
    case Rule::kSchemaConflict:
      return fmt::format("type_id {} is registered again with another schema", number);
    case Rule::kUnknownType:
      return "no schema has been given for type_id " + number;
    case Rule::kVarint:
      return "a LEB128 number has more than 64 bits";
    case Rule::kElementType:
      return fmt::format("element type {} does not exist in lists and maps", number);
    case Rule::kNesting:
      return fmt::format("lists and maps are nested deeper than {}", kMaxNestingDepth);
    case Rule::kTime:
      return "the event's time is beyond 64 bits";
    case Rule::kFrameSize:
      return fmt::format("a frame of at least {} bytes is longer than is taken here", number);
    case Rule::kState:
      return fmt::format("schemas and pools of one sub-stream take {} bytes, more than is given",
                         number);
    case Rule::kNone:
      break;
  }
  return {};
}

}  // namespace

std::optional<std::string_view> Event::text(size_t field) const {
  const Value& value = values_[field];
  if (!value.present()) return std::nullopt;
  if (value.type() == FieldType::kString) return value.text();
  if (value.type() == FieldType::kPooledString) return pools_.string(value.pool_id());
  return std::nullopt;
}

std::optional<StackView> Event::stack(size_t field) const {
  const Value& value = values_[field];
  if (!value.present()) return std::nullopt;
  if (value.type() == FieldType::kStackFrames) return value.stack();
  if (value.type() == FieldType::kPooledStackFrames) return pools_.stack(value.pool_id());
  return std::nullopt;
}

std::optional<Problem> Decoder::finish(Bytes rest) {
  if (problem_) return problem_;
  if (!rest.empty()) {
    Visitor ignored;
    const Decoded tail = decode(rest, ignored);
    if (tail.state == DecodeState::kFailed) return problem_;
    if (tail.state == DecodeState::kNeedMore) {
      problem_ = Problem{Rule::kTruncated, offset_, offset_ + rest.size() - tail.bytes,
                         sentence_of(Rule::kTruncated, tail.need)};
      return problem_;
    }
  }
  if (sub_streams_ == 0)
    problem_ = Problem{Rule::kTruncated, 0, 0, sentence_of(Rule::kTruncated, kHeaderBytes)};
  return problem_;
}

void Decoder::resume_at(uint64_t offset) {
  problem_.reset();
  offset_ = offset;
  start_sub_stream();
  sub_streams_ -= 1;
}

void Decoder::start_sub_stream() {
  schemas_.clear();
  pools_.clear();
  base_ = 0;
  ++sub_streams_;
}

void Decoder::note_trouble(const FrameReader& reader) {
  const bool too_long =
      reader.rule() == Rule::kTruncated && reader.need() > options_.max_frame_bytes;
  if (reader.rule() == Rule::kTruncated && !too_long) {
    need_ = reader.need();
    return;
  }
  const Rule rule = too_long ? Rule::kFrameSize : reader.rule();
  problem_ = Problem{rule, offset_, offset_ + reader.offset(),
                     sentence_of(rule, too_long ? reader.need() : reader.detail())};
}

// read_event() with every end checked and every fault named.
Decoder::EventStep Decoder::read_event_carefully(const uint8_t* at, const uint8_t* end) {
  FrameReader reader(Bytes(at, end));
  const auto stop = [&]() -> EventStep {
    note_trouble(reader);
    return {};
  };
  if (!reader.require(kEventHeadBytes)) return stop();
  reader.skip(1);
  const uint16_t type_id = reader.take<uint16_t>();
  const KnownSchema* const schema = schemas_.find(type_id);
  if (schema == nullptr) {
    reader.fail(Rule::kUnknownType, type_id);
    return stop();
  }
  uint64_t time = base_;
  if (schema->has_timestamp()) {
    if (!reader.require(kTimedEventHeadBytes - kEventHeadBytes)) return stop();
    const uint64_t delta = load_le<uint16_t>(reader.at()) | uint64_t{reader.at()[2]} << 16;
    time = base_ + delta;
    if (time < base_) {
      reader.fail(Rule::kTime);
      return stop();
    }
    reader.skip(3);
  }
  if (!read_fields(reader, schema->type_bytes(), values_.get())) return stop();
  if (reader.offset() > options_.max_frame_bytes) {
    reader.fail(Rule::kFrameSize, reader.offset());
    return stop();
  }
  base_ = time;
  return {schema, reader.at(), time};
}

bool Decoder::read_other(const uint8_t* at, const uint8_t* end, Other& out) {
  FrameReader reader(Bytes(at, end));
  out.tag = static_cast<FrameTag>(*at);
  bool good = false;
  if (sub_streams_ == 0 && out.tag != FrameTag::kHeader) {
    reader.fail(Rule::kHeader);
  } else {
    switch (out.tag) {
      case FrameTag::kHeader:
        good = read_header(reader);
        break;
      case FrameTag::kSchema:
        good = read_schema(reader, out);
        break;
      case FrameTag::kStringPool:
        good = read_strings(reader, out);
        break;
      case FrameTag::kStackPool:
        good = read_stacks(reader, out);
        break;
      case FrameTag::kTimestampReset:
        good = reader.require(kResetBytes);
        if (!good) break;
        reader.skip(1);
        base_ = out.number = reader.take<uint64_t>();
        break;
      case FrameTag::kAnnotations:
        good = read_annotations(reader, out);
        break;
      default:
        reader.fail(Rule::kTag, *at);
        break;
    }
  }
  const uint64_t state = schemas_.state_bytes() + pools_.state_bytes();
  if (good && reader.offset() > options_.max_frame_bytes)
    good = reader.fail(Rule::kFrameSize, reader.offset());
  if (good && state > options_.max_state_bytes) good = reader.fail(Rule::kState, state);
  if (!good) note_trouble(reader);
  out.end = reader.at();
  return good;
}

// As soon as a byte differs from the magic, more bytes will not make it one.
bool Decoder::read_header(FrameReader& reader) {
  const size_t there = static_cast<size_t>(std::min<uint64_t>(reader.left(), sizeof kMagic));
  if (!std::equal(kMagic, kMagic + there, reader.at())) return reader.fail(Rule::kHeader);
  if (!reader.require(kHeaderBytes)) return false;
  const uint8_t version = reader.at()[4];
  if (version != kFormatVersion) return reader.fail(Rule::kVersion, version);
  reader.skip(kHeaderBytes);
  return true;
}

bool Decoder::read_schema(FrameReader& reader, Other& out) {
  constexpr uint64_t kBehindName = 3;     // has_timestamp, field count
  constexpr uint64_t kMinFieldBytes = 3;  // name length, type
  const uint8_t* const begin = reader.at();
  name_offsets_.clear();
  types_.clear();
  std::string_view name;
  if (!reader.require(3, 2 + kBehindName)) return false;
  reader.skip(3);
  if (!reader.name(name, kBehindName) || !reader.require(kBehindName)) return false;
  reader.skip(1);
  const uint16_t fields = reader.take<uint16_t>();
  for (uint64_t left = fields; left != 0; --left) {
    const uint64_t behind = kMinFieldBytes * (left - 1) + 1;
    name_offsets_.push_back(static_cast<uint32_t>(reader.offset()));
    if (!reader.name(name, behind) || !reader.require(1, behind - 1)) return false;
    const uint8_t type = *reader.at();
    if (!is_field_type(type & static_cast<uint8_t>(~kOptionalBit)))
      return reader.fail(Rule::kFieldType, type);
    reader.skip(1);
    types_.push_back(type);
  }
  out.schema = schemas_.add({begin, reader.at()}, name_offsets_, types_);
  if (out.schema == nullptr)
    return reader.fail(Rule::kSchemaConflict, load_le<uint16_t>(begin + 1));
  if (value_places_ < schemas_.max_fields() || values_ == nullptr) {
    value_places_ = std::max<size_t>(schemas_.max_fields(), 16);
    values_ = std::make_unique<Value[]>(value_places_);
  }
  return true;
}

bool Decoder::read_pool(FrameReader& reader, uint64_t element_bytes, Other& out) {
  if (!reader.require(kPoolHeadBytes)) return false;
  reader.skip(1);
  out.count = reader.take<uint32_t>();
  const uint8_t* const begin = reader.at();
  for (uint64_t left = out.count; left != 0; --left) {
    const uint64_t behind = kPoolEntryHeadBytes * (left - 1);
    if (!reader.require(kPoolEntryHeadBytes, behind)) return false;
    reader.skip(4);
    const uint64_t size = element_bytes * reader.take<uint32_t>();
    if (!reader.require(size, behind)) return false;
    reader.skip(size);
  }
  out.entries = {begin, reader.at()};
  return true;
}

bool Decoder::read_strings(FrameReader& reader, Other& out) {
  if (!read_pool(reader, 1, out)) return false;
  if (options_.pools == PoolStorage::kNone) return true;
  StringPoolView entries(out.count, out.entries);
  for (StringPoolView::Entry entry; entries.next(entry);) {
    const uint8_t* data = reinterpret_cast<const uint8_t*>(entry.text.data());
    if (options_.pools == PoolStorage::kCopy) data = pools_.keep({data, entry.text.size()});
    pools_.strings.define(entry.id, {data, static_cast<uint32_t>(entry.text.size())});
  }
  return true;
}

bool Decoder::read_stacks(FrameReader& reader, Other& out) {
  if (!read_pool(reader, sizeof(uint64_t), out)) return false;
  if (options_.pools == PoolStorage::kNone) return true;
  StackPoolView entries(out.count, out.entries);
  for (StackPoolView::Entry entry; entries.next(entry);) {
    const Bytes frames = entry.stack.bytes();
    const uint8_t* const data =
        options_.pools == PoolStorage::kCopy ? pools_.keep(frames) : frames.data();
    pools_.stacks.define(entry.id, {data, entry.stack.size()});
  }
  return true;
}

bool Decoder::read_annotations(FrameReader& reader, Other& out) {
  constexpr uint64_t kMinEntryBytes = 8;  // field index, two lengths
  reader.skip(1);                         // the tag, which is there
  if (!reader.varint(out.number, 2) || !reader.require(2)) return false;
  out.count = reader.take<uint16_t>();
  const uint8_t* const begin = reader.at();
  for (uint64_t left = out.count; left != 0; --left) {
    const uint64_t behind = kMinEntryBytes * (left - 1) + 4;
    std::string_view key;
    if (!reader.require(2, 2 + behind)) return false;
    reader.skip(2);
    if (!reader.name(key, behind) || !reader.require(4, behind - 4)) return false;
    const uint32_t size = reader.take<uint32_t>();
    if (!reader.require(size, behind - 4)) return false;
    reader.skip(size);
  }
  out.entries = {begin, reader.at()};
  out.known = schemas_.annotate(out.number, out.entries);
  return true;
}

}  // namespace collect::dial9
