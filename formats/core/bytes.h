// Little-endian reads and writes on byte spans, at any alignment. The one place where bytes become
// numbers: received bytes are never cast to a struct pointer. No allocation, no exceptions, so the
// agent uses it too.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace collect {

static_assert(std::endian::native == std::endian::little,
              "every layout of ours is little-endian and is copied as it is");

using Bytes = std::span<const uint8_t>;
using MutableBytes = std::span<uint8_t>;

// Loads a trivially copyable value; the caller has checked that sizeof(T) bytes are there.
template <class T>
inline T load_le(const uint8_t* at) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <class T>
inline void store_le(uint8_t* at, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::memcpy(at, &value, sizeof value);
}

// Reads front to back. A read past the end returns zero and makes ok() false for good, so a decoder
// reads a whole header and asks once.
class ByteReader {
 public:
  explicit ByteReader(Bytes bytes) : bytes_(bytes) {}

  uint8_t u8() { return take<uint8_t>(); }
  uint16_t u16() { return take<uint16_t>(); }
  uint32_t u32() { return take<uint32_t>(); }
  uint64_t u64() { return take<uint64_t>(); }

  Bytes bytes(size_t count) {
    if (!ok_ || count > remaining()) {
      ok_ = false;
      return {};
    }
    Bytes taken = bytes_.subspan(offset_, count);
    offset_ += count;
    return taken;
  }
  void skip(size_t count) { (void)bytes(count); }

  bool ok() const { return ok_; }
  size_t offset() const { return offset_; }
  size_t remaining() const { return bytes_.size() - offset_; }

 private:
  template <class T>
  T take() {
    if (!ok_ || sizeof(T) > remaining()) {
      ok_ = false;
      return 0;
    }
    T value = load_le<T>(bytes_.data() + offset_);
    offset_ += sizeof(T);
    return value;
  }

  Bytes bytes_;
  size_t offset_ = 0;
  bool ok_ = true;
};

// Writes front to back into a caller's buffer. A write past the end is dropped and makes ok()
// false.
class ByteWriter {
 public:
  explicit ByteWriter(MutableBytes out) : out_(out) {}

  void u8(uint8_t value) { put(value); }
  void u16(uint16_t value) { put(value); }
  void u32(uint32_t value) { put(value); }
  void u64(uint64_t value) { put(value); }
  void bytes(Bytes source) {
    if (!ok_ || source.size() > out_.size() - offset_) {
      ok_ = false;
      return;
    }
    if (!source.empty()) std::memcpy(out_.data() + offset_, source.data(), source.size());
    offset_ += source.size();
  }
  void zeros(size_t count) {
    if (!ok_ || count > out_.size() - offset_) {
      ok_ = false;
      return;
    }
    std::memset(out_.data() + offset_, 0, count);
    offset_ += count;
  }

  bool ok() const { return ok_; }
  size_t offset() const { return offset_; }

 private:
  template <class T>
  void put(T value) {
    if (!ok_ || sizeof(T) > out_.size() - offset_) {
      ok_ = false;
      return;
    }
    store_le(out_.data() + offset_, value);
    offset_ += sizeof(T);
  }

  MutableBytes out_;
  size_t offset_ = 0;
  bool ok_ = true;
};

}  // namespace collect
