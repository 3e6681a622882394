// Reads what .eh_frame and .gcc_except_table are made of. Where the bytes end or a form is unknown,
// ok() becomes false for good.
#pragma once

#include <cstdint>

#include "daemon/patch/planner/elf_image.h"

namespace collect::patch {

inline constexpr uint8_t kOmitted = 0xFF;

class DwarfReader {
 public:
  // Reads the segment from `address` on.
  DwarfReader(const ElfImage& image, uint64_t address)
      : bytes_(image.at(address)), address_(address) {}
  DwarfReader(Bytes bytes, uint64_t address) : bytes_(bytes), address_(address) {}

  bool ok() const { return ok_; }
  bool at_end() const { return at_ >= bytes_.size(); }
  uint64_t address() const { return address_ + at_; }
  Bytes rest() const { return bytes_.subspan(at_); }

  template <class T>
  T take() {
    if (!ok_ || bytes_.size() - at_ < sizeof(T)) {
      ok_ = false;
      return 0;
    }
    const T value = load_le<T>(bytes_.data() + at_);
    at_ += sizeof(T);
    return value;
  }
  uint8_t u8() { return take<uint8_t>(); }
  void skip(uint64_t bytes) {
    if (!ok_ || bytes > bytes_.size() - at_) {
      ok_ = false;
    } else {
      at_ += bytes;
    }
  }

  uint64_t unsigned_leb() {
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const uint8_t byte = u8();
      if (!ok_ || shift > 63) {
        ok_ = false;
        return 0;
      }
      value |= uint64_t{byte & 0x7Fu} << shift;
      if ((byte & 0x80) == 0) return value;
    }
  }
  int64_t signed_leb() {
    uint64_t value = 0;
    for (unsigned shift = 0;;) {
      const uint8_t byte = u8();
      if (!ok_ || shift > 63) {
        ok_ = false;
        return 0;
      }
      value |= uint64_t{byte & 0x7Fu} << shift;
      shift += 7;
      if ((byte & 0x80) != 0) continue;
      if ((byte & 0x40) != 0 && shift < 64) value |= ~uint64_t{0} << shift;
      return static_cast<int64_t>(value);
    }
  }

  // A pointer as the LSB's DW_EH_PE_ forms have it; `data` is what data-relative ones are relative
  // to. Indirect ones are read, not followed.
  uint64_t pointer(uint8_t form, uint64_t data) {
    const uint64_t here = address();
    uint64_t base = 0;
    if ((form & 0x70) == 0x10) base = here;
    if ((form & 0x70) == 0x30) base = data;
    if ((form & 0x70) > 0x30) ok_ = false;
    const uint64_t value = raw(form);
    if ((form & 0x70) == 0x20) ok_ = false;  // relative to text: no one's on this processor
    return value == 0 ? 0 : base + value;    // null stays null
  }
  // The value without its base: a length.
  uint64_t raw(uint8_t form) {
    switch (form & 0x0F) {
      case 0x00:
      case 0x04:
      case 0x0C:
        return take<uint64_t>();
      case 0x01:
        return unsigned_leb();
      case 0x02:
        return take<uint16_t>();
      case 0x03:
        return take<uint32_t>();
      case 0x09:
        return static_cast<uint64_t>(signed_leb());
      case 0x0A:
        return static_cast<uint64_t>(int64_t{take<int16_t>()});
      case 0x0B:
        return static_cast<uint64_t>(int64_t{take<int32_t>()});
      default:
        ok_ = false;
        return 0;
    }
  }

 private:
  Bytes bytes_;
  uint64_t address_;
  size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace collect::patch
