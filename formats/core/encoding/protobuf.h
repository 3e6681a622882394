// Protocol Buffers as bytes (protobuf.dev, "Encoding"): what a writer by hand needs, without
// libprotobuf, which no format room links. Appends to a vector; not thread-safe.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "formats/core/bytes.h"
#include "formats/core/encoding/leb128.h"

namespace collect {

enum class ProtoWire : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2 };

constexpr uint32_t proto_tag(uint32_t field, ProtoWire wire) {
  return field << 3 | static_cast<uint32_t>(wire);
}

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

}  // namespace collect
