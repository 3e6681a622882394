// LEB128 numbers one behind another: appended to bytes, and read again (leb128.h).
#pragma once

#include <cstdint>
#include <vector>

#include "formats/core/bytes.h"
#include "formats/core/encoding/leb128.h"

namespace collect {

inline void append_uleb128(std::vector<uint8_t>& to, uint64_t value) {
  uint8_t bytes[kLeb128MaxBytes];
  to.insert(to.end(), bytes, bytes + write_uleb128(bytes, value));
}
inline void append_sleb128(std::vector<uint8_t>& to, int64_t value) {
  uint8_t bytes[kLeb128MaxBytes];
  to.insert(to.end(), bytes, bytes + write_sleb128(bytes, value));
}

// After one that is none, or fail(), all are 0 and nothing is left.
class Leb128Values {
 public:
  explicit Leb128Values(Bytes bytes) : left_(bytes) {}

  uint64_t next() { return taken(read_uleb128(left_)); }
  int64_t next_signed() { return taken(read_sleb128(left_)); }
  void fail() {
    ok_ = false;
    left_ = {};
  }
  bool ok() const { return ok_; }
  Bytes left() const { return left_; }

 private:
  template <class T>
  T taken(const Leb128<T>& read) {
    if (read) {
      left_ = left_.subspan(read.size);
    } else {
      fail();
    }
    return read ? read.value : 0;
  }

  Bytes left_;
  bool ok_ = true;
};

}  // namespace collect
