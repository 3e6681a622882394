#include "formats/wtf/binary/event_chunk.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <functional>

#include "formats/core/text/json_cursor.h"
#include "formats/wtf/binary/chunk_encoder.h"
#include "formats/wtf/text.h"

namespace collect::wtf {
namespace {

Error misfit(const Argument& argument, const char* why) {
  return refused(fmt::format("argument '{}' ({}{}{}", argument.name, arg_type_name(argument.type),
                             argument.array ? "[]): " : "): ", why));
}

struct Range {
  int64_t low;
  int64_t high;
};

constexpr Range range_of(ArgType type) {
  switch (type) {
    case ArgType::kBool:
      return {0, 1};
    case ArgType::kInt8:
      return {INT8_MIN, INT8_MAX};
    case ArgType::kUint8:
    case ArgType::kChar:
      return {0, UINT8_MAX};
    case ArgType::kInt16:
      return {INT16_MIN, INT16_MAX};
    case ArgType::kUint16:
    case ArgType::kWchar:
      return {0, UINT16_MAX};
    case ArgType::kInt32:
      return {INT32_MIN, INT32_MAX};
    default:
      return {0, UINT32_MAX};
  }
}

// Whether elements of one type may be in an array of the other.
bool elements_fit(ArgType wanted, ArgType given) {
  if (wanted == given) return true;
  if (wanted == ArgType::kChar) return given == ArgType::kUint8 || given == ArgType::kInt8;
  if (wanted == ArgType::kWchar) return given == ArgType::kUint16;
  return given == ArgType::kChar &&
         wanted == (std::is_signed_v<char> ? ArgType::kInt8 : ArgType::kUint8);
}

}  // namespace

void EventChunk::reserve(size_t chunk_bytes) {
  events_.resize(chunk_bytes + kChunkHeaderBytes);
}

Status EventChunk::put(const EventType& known, uint32_t us, std::span<const Arg> arguments) {
  if (known.arguments.size() != arguments.size()) {
    return refused(fmt::format("event '{}' has {} arguments, not {}", known.name,
                               known.arguments.size(), arguments.size()));
  }
  const size_t before = used_;
  put_word(known.wire_id);
  put_word(us);
  for (size_t i = 0; i < arguments.size(); ++i) {
    Status placed = put_argument(known.arguments[i], arguments[i]);
    if (placed.ok()) continue;
    used_ = before;
    return placed;
  }
  return {};
}

Status EventChunk::put_argument(const Argument& argument, const Arg& arg) {
  if (argument.array) return put_array(argument, arg);
  if (is_string(argument.type)) return put_text(argument, arg);
  if (argument.type == ArgType::kFloat32 && arg.kind() == Arg::Kind::kReal) {
    put_word(std::bit_cast<uint32_t>(arg.real()));
    return {};
  }
  return put_integer(argument, arg);
}

Status EventChunk::put_integer(const Argument& argument, const Arg& arg) {
  if (arg.kind() != Arg::Kind::kInteger) return misfit(argument, "a number is expected");
  if (argument.type == ArgType::kFloat32) {
    put_word(std::bit_cast<uint32_t>(static_cast<float>(arg.integer())));
    return {};
  }
  const Range range = range_of(argument.type);
  if (arg.integer() < range.low || arg.integer() > range.high) {
    return misfit(argument, "the number does not fit; 64 bits take two arguments or an 'any'");
  }
  // The low bytes of the word hold the value, the others are zero.
  const auto mask = static_cast<uint32_t>((uint64_t{1} << 8 * element_bytes(argument.type)) - 1);
  put_word(static_cast<uint32_t>(arg.integer()) & mask);
  return {};
}

Status EventChunk::put_text(const Argument& argument, const Arg& arg) {
  if (arg.kind() == Arg::Kind::kNull) {
    put_word(kNullOrdinal);
    return {};
  }
  if (arg.kind() != Arg::Kind::kText) return misfit(argument, "a text is expected");
  const std::string_view text = arg.text();
  if (text.size() > kMaxArgumentBytes) return misfit(argument, "more than 64 MiB");
  if (argument.type == ArgType::kAny && !is_json(text)) return misfit(argument, "it is not JSON");
  if (text.empty()) {
    put_word(kEmptyOrdinal);
    return {};
  }
  const auto known = ordinals_.find(text);
  if (known != ordinals_.end()) {
    put_word(known->second);
    return {};
  }
  if (!is_safe_text(text)) return misfit(argument, "it is not UTF-8, or holds a NUL");
  put_word(intern(text));
  return {};
}

Status EventChunk::put_array(const Argument& argument, const Arg& arg) {
  if (arg.kind() == Arg::Kind::kNull) {
    put_word(kNullOrdinal);
    return {};
  }
  if (arg.kind() != Arg::Kind::kArray || !elements_fit(argument.type, arg.element())) {
    return misfit(argument, "an array of that type is expected");
  }
  if (arg.elements().size() > kMaxArgumentBytes) return misfit(argument, "more than 64 MiB");
  put_word(static_cast<uint32_t>(arg.elements().size() / element_bytes(argument.type)));
  put_bytes(arg.elements());
  return {};
}

void EventChunk::put_word(uint32_t word) {
  uint8_t bytes[4];
  store_le(bytes, word);
  put_bytes(bytes);
}

void EventChunk::put_bytes(Bytes bytes) {
  const size_t size = (bytes.size() + 3) / 4 * 4;
  if (events_.size() - used_ < size) {
    events_.resize(std::max(events_.size() * 2, used_ + size + kChunkHeaderBytes));
  }
  std::copy(bytes.begin(), bytes.end(), events_.begin() + static_cast<ptrdiff_t>(used_));
  std::fill_n(events_.begin() + static_cast<ptrdiff_t>(used_ + bytes.size()), size - bytes.size(),
              uint8_t{0});
  used_ += size;
}

uint32_t EventChunk::intern(std::string_view text) {
  const auto known = ordinals_.find(text);
  if (known != ordinals_.end()) return known->second;
  const auto ordinal = static_cast<uint32_t>(ordinals_.size());
  ordinals_.emplace(text, ordinal);
  table_.append(text) += '\0';
  return ordinal;
}

uint32_t EventChunk::add_resource(uint32_t type, Bytes bytes) {
  resources_.push_back({type, std::vector<uint8_t>(bytes.begin(), bytes.end())});
  resource_bytes_ += bytes.size();
  return static_cast<uint32_t>(resources_.size() - 1);
}

Status EventChunk::write(ByteSink& sink, uint32_t id, uint64_t& bytes) {
  std::vector<PartOut> parts;
  parts.push_back({static_cast<uint32_t>(PartType::kStringTable), bytes_of(table_)});
  for (const Resource& resource : resources_) parts.push_back({resource.type, resource.bytes});
  parts.push_back(
      {static_cast<uint32_t>(PartType::kBinaryEventBuffer), Bytes(events_.data(), used_)});
  ChunkOut chunk;
  chunk.id = id;
  chunk.type = static_cast<uint32_t>(ChunkType::kEventData);
  chunk.start_time = std::min(first_us_, last_us_);
  chunk.end_time = last_us_;
  const Status written = write_chunk(sink, chunk, parts);
  bytes += kChunkHeaderBytes + parts.size() * kPartEntryBytes;
  for (const PartOut& part : parts) bytes += (part.bytes.size() + 3) / 4 * 4;
  used_ = 0;
  table_.clear();
  ordinals_.clear();
  resources_.clear();
  resource_bytes_ = 0;
  first_us_ = UINT32_MAX;
  last_us_ = 0;
  return written;
}

}  // namespace collect::wtf
