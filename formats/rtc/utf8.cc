#include "formats/rtc/utf8.h"

namespace collect::rtc {

bool is_utf8(Bytes bytes) {
  size_t at = 0;
  while (at < bytes.size()) {
    // Eight ASCII characters at once: most text is nothing else.
    if (bytes.size() - at >= 8 &&
        (load_le<uint64_t>(bytes.data() + at) & 0x8080808080808080ull) == 0) {
      at += 8;
      continue;
    }
    const uint8_t first = bytes[at++];
    if (first < 0x80) continue;
    size_t more = 0;
    uint8_t low = 0x80;
    uint8_t high = 0xBF;
    if (first >= 0xC2 && first <= 0xDF) {
      more = 1;
    } else if (first >= 0xE0 && first <= 0xEF) {
      more = 2;
      if (first == 0xE0) low = 0xA0;
      if (first == 0xED) high = 0x9F;
    } else if (first >= 0xF0 && first <= 0xF4) {
      more = 3;
      if (first == 0xF0) low = 0x90;
      if (first == 0xF4) high = 0x8F;
    } else {
      return false;
    }
    if (bytes.size() - at < more) return false;
    for (; more > 0; --more) {
      const uint8_t next = bytes[at++];
      if (next < low || next > high) return false;
      low = 0x80;
      high = 0xBF;
    }
  }
  return true;
}

}  // namespace collect::rtc
