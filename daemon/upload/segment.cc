#include "daemon/upload/segment.h"

#include <cstring>

#include "formats/core/crc32.h"
#include "storage/session_files.h"
#include "storage/session_layout.h"

namespace collect::upload {
namespace {

constexpr std::string_view kMagic = "CSEGMNT1";
constexpr size_t kChecksumBytes = 4;

Error damaged(const std::string& what) {
  return {Code::kDamaged, "segment: " + what};
}

std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool is_path(const SegmentAction& action) {
  if (action.path.size() > kMaxSegmentPathBytes) return false;
  return action.kind == SegmentKind::kName
             ? storage::parse_session_path("", action.path).has_value()
             : storage::is_session_path(action.path);
}

}  // namespace

void SegmentBuilder::begin() {
  bytes_.assign(kSegmentHeadBytes, 0);
  std::memcpy(bytes_.data(), kMagic.data(), kMagic.size());
  actions_ = 0;
  data_bytes_ = 0;
}

size_t SegmentBuilder::room() const {
  return actions_ == kMaxSegmentActions ? 0 : kMaxSegmentBytes - data_bytes_;
}

void SegmentBuilder::add(const SegmentAction& action) {
  last_ = bytes_.size();
  ++actions_;
  data_bytes_ += action.data.size();
  bytes_.resize(last_ + kSegmentActionBytes + action.path.size() + action.data.size());
  ByteWriter out(MutableBytes(bytes_).subspan(last_));
  out.u8(static_cast<uint8_t>(action.kind));
  out.u8(0);
  out.u16(static_cast<uint16_t>(action.path.size()));
  out.u32(static_cast<uint32_t>(action.data.size()));
  out.u64(action.offset);
  out.bytes({reinterpret_cast<const uint8_t*>(action.path.data()), action.path.size()});
  out.bytes(action.data);
}

MutableBytes SegmentBuilder::add_write(std::string_view path, uint64_t offset, size_t bytes) {
  add({SegmentKind::kWrite, path, offset, {}});
  store_le(bytes_.data() + last_ + 4, static_cast<uint32_t>(bytes));
  data_bytes_ += bytes;
  bytes_.resize(bytes_.size() + bytes);
  return MutableBytes(bytes_).last(bytes);
}

void SegmentBuilder::take_back(size_t bytes) {
  const auto had = load_le<uint32_t>(bytes_.data() + last_ + 4);
  store_le(bytes_.data() + last_ + 4, static_cast<uint32_t>(had - bytes));
  data_bytes_ -= bytes;
  bytes_.resize(bytes_.size() - bytes);
}

Bytes SegmentBuilder::finish() {
  store_le(bytes_.data() + kMagic.size(), actions_);
  const uint32_t checksum = crc32c(bytes_);
  bytes_.resize(bytes_.size() + kChecksumBytes);
  store_le(bytes_.data() + bytes_.size() - kChecksumBytes, checksum);
  return bytes_;
}

Result<std::vector<SegmentAction>> parse_segment(Bytes object) {
  if (object.size() > kMaxSegmentObjectBytes) {
    return Error{Code::kLimit,
                 "segment: more than " + std::to_string(kMaxSegmentObjectBytes) + " bytes"};
  }
  if (object.size() < kSegmentHeadBytes + kChecksumBytes) return damaged("too short");
  const Bytes body = object.first(object.size() - kChecksumBytes);
  ByteReader reader(body);
  if (text_of(reader.bytes(kMagic.size())) != kMagic) return damaged("it does not begin as one");
  if (load_le<uint32_t>(object.data() + body.size()) != crc32c(body)) {
    return damaged("its checksum does not hold");
  }
  const uint32_t count = reader.u32();
  if (count > kMaxSegmentActions) {
    return Error{Code::kLimit,
                 "segment: more than " + std::to_string(kMaxSegmentActions) + " actions"};
  }
  if (reader.u32() != 0) return damaged("a later version wrote it");
  std::vector<SegmentAction> actions;
  actions.reserve(count);
  for (uint32_t i = 0; i < count; ++i) {
    SegmentAction action;
    action.kind = static_cast<SegmentKind>(reader.u8());
    const uint8_t zero = reader.u8();
    const uint16_t path_bytes = reader.u16();
    const uint32_t data_bytes = reader.u32();
    action.offset = reader.u64();
    action.path = text_of(reader.bytes(path_bytes));
    action.data = reader.bytes(data_bytes);
    if (!reader.ok()) return damaged("an action is cut off");
    const bool is_known = action.kind >= SegmentKind::kRemove && action.kind <= SegmentKind::kName;
    if (!is_known || zero != 0) return damaged("an action of an unknown kind");
    if (!is_path(action)) return damaged("no path of a session's file");
    const bool has_data = action.kind == SegmentKind::kWrite;
    constexpr uint64_t kMostOffset = uint64_t{1} << 62;
    if ((!has_data && data_bytes != 0) || action.offset > kMostOffset) {
      return damaged("an action that cannot be");
    }
    actions.push_back(action);
  }
  if (reader.remaining() != 0) return damaged("bytes behind its last action");
  return actions;
}

}  // namespace collect::upload
