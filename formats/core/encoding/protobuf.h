// Protocol Buffers as bytes (protobuf.dev, "Encoding"): what a writer and a reader by hand need,
// without libprotobuf, which no format room links. Not thread-safe.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "formats/core/bytes.h"
#include "formats/core/encoding/leb128.h"

namespace collect {

enum class ProtoWire : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

constexpr uint32_t proto_tag(uint32_t field, ProtoWire wire) {
  return field << 3 | static_cast<uint32_t>(wire);
}

// Appends to a vector.
class ProtoWriter {
 public:
  explicit ProtoWriter(std::vector<uint8_t>& out) : out_(out) {}

  // uint32, uint64, bool, enum; of int32 and int64 the two's complement in 64 bits.
  void varint(uint32_t field, uint64_t value) {
    raw(proto_tag(field, ProtoWire::kVarint));
    raw(value);
  }
  void signed_varint(uint32_t field, int64_t value) { varint(field, static_cast<uint64_t>(value)); }
  void fixed64(uint32_t field, uint64_t value) {
    raw(proto_tag(field, ProtoWire::kFixed64));
    const size_t at = out_.size();
    out_.resize(at + sizeof value);
    store_le(out_.data() + at, value);
  }
  void bytes(uint32_t field, Bytes value) {
    raw(proto_tag(field, ProtoWire::kBytes));
    raw(value.size());
    out_.insert(out_.end(), value.begin(), value.end());
  }
  void text(uint32_t field, std::string_view value) {
    bytes(field, Bytes(reinterpret_cast<const uint8_t*>(value.data()), value.size()));
  }
  // A packed repeated field of varints.
  void packed(uint32_t field, const uint64_t* values, size_t count) {
    const size_t at = begin(field);
    for (size_t i = 0; i < count; ++i) raw(values[i]);
    end(at);
  }

  // A message within the message: begin(field), its fields, end(what begin() returned). Its length
  // takes as many bytes as it needs.
  size_t begin(uint32_t field) {
    raw(proto_tag(field, ProtoWire::kBytes));
    out_.push_back(0);
    return out_.size();
  }
  void end(size_t at) {
    const size_t length = out_.size() - at;
    const size_t more = uleb128_size(length) - 1;
    if (more != 0) {
      out_.insert(out_.end(), more, 0);
      std::memmove(out_.data() + at + more, out_.data() + at, length);
    }
    write_uleb128(out_.data() + at - 1, length);
  }

 private:
  void raw(uint64_t value) {
    uint8_t encoded[kLeb128MaxBytes];
    out_.insert(out_.end(), encoded, encoded + write_uleb128(encoded, value));
  }

  std::vector<uint8_t>& out_;
};

// The fields of one message, in its order. Groups, which no one writes any more, are an error.
class ProtoFields {
 public:
  explicit ProtoFields(Bytes message) : message_(message) {}

  // False at the end, and at what is no field; ok() says which.
  bool next() {
    if (!ok_ || at_ == message_.size()) return false;
    begin_ = at_;
    ok_ = take();
    return ok_;
  }
  bool ok() const { return ok_; }

  uint32_t field() const { return field_; }
  ProtoWire wire() const { return wire_; }
  // Of a varint and of fixed widths; of bytes their length.
  uint64_t value() const { return value_; }
  // Of a field of another type: nothing.
  Bytes bytes() const { return bytes_; }
  std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
  }
  // Where the field begins that was read last, or that could not be read.
  size_t offset() const { return begin_; }

 private:
  bool take_varint(uint64_t& value) {
    const auto read = read_uleb128(message_.subspan(at_));
    value = read.value;
    at_ += read.size;
    return static_cast<bool>(read);
  }
  template <class Fixed>
  bool take_fixed() {
    if (message_.size() - at_ < sizeof(Fixed)) return false;
    value_ = load_le<Fixed>(message_.data() + at_);
    at_ += sizeof(Fixed);
    return true;
  }
  bool take() {
    constexpr uint64_t kMaxField = (uint64_t{1} << 29) - 1;
    uint64_t tag = 0;
    bytes_ = {};
    if (!take_varint(tag) || tag >> 3 == 0 || tag >> 3 > kMaxField) return false;
    field_ = static_cast<uint32_t>(tag >> 3);
    wire_ = static_cast<ProtoWire>(tag & 7);
    switch (wire_) {
      case ProtoWire::kVarint:
        return take_varint(value_);
      case ProtoWire::kFixed64:
        return take_fixed<uint64_t>();
      case ProtoWire::kFixed32:
        return take_fixed<uint32_t>();
      case ProtoWire::kBytes:
        break;
      default:
        return false;
    }
    if (!take_varint(value_) || value_ > message_.size() - at_) return false;
    bytes_ = message_.subspan(at_, value_);
    at_ += value_;
    return true;
  }

  Bytes message_;
  size_t at_ = 0;
  size_t begin_ = 0;
  bool ok_ = true;
  uint32_t field_ = 0;
  ProtoWire wire_{};
  uint64_t value_ = 0;
  Bytes bytes_;
};

}  // namespace collect
