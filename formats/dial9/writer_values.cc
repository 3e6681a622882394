// The careful ways of putting a value: optional fields, elements of lists and maps, values of any
// length, and everything that does not fit.
#include <cstring>

#include "formats/dial9/writer.h"

namespace collect::dial9 {
namespace {

// Longest event that is written; the rest of kMaxFrameBytes is for values of fixed size, which are
// not counted one by one.
constexpr uint64_t kMaxEventBytes = kMaxFrameBytes - (uint64_t{1} << 20);

}  // namespace

// The place of a value of so many bytes, with what stands before it written: the presence byte of
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
