#include "proto/wire/lz4_block.h"

#include <bit>
#include <cstring>

namespace collect::wire {
namespace {

constexpr size_t kMinMatch = 4;
constexpr size_t kLastLiterals = 5;     // of every block, by the format
constexpr size_t kLastMatchStart = 12;  // before the end, by the format
constexpr size_t kNibble = 15;
// Where nothing matches, the steps grow: one byte more after every 64 tries.
constexpr uint32_t kTriesShift = 6;

uint32_t hash(uint32_t four) {
  return (four * 2654435761u) >> (32 - kLz4TableBits);
}

// How many bytes from `a` equal those from `b`; `a` stays below `end`, and `b` is before it.
size_t common_bytes(const uint8_t* a, const uint8_t* b, const uint8_t* end) {
  const uint8_t* const begin = a;
  while (end - a >= 8) {
    const uint64_t difference = load_le<uint64_t>(a) ^ load_le<uint64_t>(b);
    if (difference != 0) {
      return static_cast<size_t>(a - begin) + static_cast<size_t>(std::countr_zero(difference)) / 8;
    }
    a += 8;
    b += 8;
  }
  while (a < end && *a == *b) {
    ++a;
    ++b;
  }
  return static_cast<size_t>(a - begin);
}

// What a length takes beyond its four bits in the token.
size_t length_bytes(size_t length) {
  return length < kNibble ? 0 : (length - kNibble) / 255 + 1;
}

uint8_t* put_length(uint8_t* out, size_t length) {
  if (length < kNibble) return out;
  size_t rest = length - kNibble;
  for (; rest >= 255; rest -= 255) *out++ = 255;
  *out++ = static_cast<uint8_t>(rest);
  return out;
}

uint8_t nibble(size_t length) {
  return static_cast<uint8_t>(length < kNibble ? length : kNibble);
}

class Writer {
 public:
  explicit Writer(MutableBytes output)
      : begin_(output.data()), out_(output.data()), end_(out_ + output.size()) {}

  // A match of `length` bytes `offset` back, after `count` literals; without one, `length` is 0.
  bool put(const uint8_t* literals, size_t count, size_t offset, size_t length) {
    const size_t beyond = length == 0 ? 0 : length - kMinMatch;
    const size_t match_bytes = length == 0 ? 0 : 2 + length_bytes(beyond);
    if (static_cast<size_t>(end_ - out_) < 1 + length_bytes(count) + count + match_bytes) {
      return false;
    }
    *out_++ = static_cast<uint8_t>(nibble(count) << 4 | nibble(beyond));
    out_ = put_length(out_, count);
    if (count != 0) std::memcpy(out_, literals, count);
    out_ += count;
    if (length == 0) return true;
    store_le(out_, static_cast<uint16_t>(offset));
    out_ = put_length(out_ + 2, beyond);
    return true;
  }
  size_t size() const { return static_cast<size_t>(out_ - begin_); }

 private:
  uint8_t* begin_;
  uint8_t* out_;
  uint8_t* end_;
};

// The bytes of a length that is 15 or more; false when the input ends within.
bool take_length(Bytes input, size_t& at, size_t& length) {
  if (length != kNibble) return true;
  uint8_t byte = 255;
  while (byte == 255) {
    if (at == input.size()) return false;
    byte = input[at++];
    length += byte;
  }
  return true;
}

// Source and target overlap when the match repeats itself.
void copy_match(uint8_t* to, size_t offset, size_t length) {
  const uint8_t* from = to - offset;
  if (offset >= length) {
    std::memcpy(to, from, length);
  } else if (offset == 1) {
    std::memset(to, *from, length);
  } else {
    // What is there already doubles with each step.
    size_t done = offset;
    std::memcpy(to, from, done);
    while (done < length) {
      const size_t count = done < length - done ? done : length - done;
      std::memcpy(to + done, to, count);
      done += count;
    }
  }
}

}  // namespace

size_t lz4_compress(Bytes input, MutableBytes output, Lz4Table& table) {
  if (input.size() > kLz4MaxInput) return 0;
  const uint8_t* const begin = input.data();
  const uint8_t* const end = begin + input.size();
  const uint8_t* literals = begin;
  Writer writer(output);
  if (input.size() > kLastMatchStart) {
    std::memset(&table, 0, sizeof table);
    const uint8_t* const last_start = end - kLastMatchStart;
    const uint8_t* const match_end = end - kLastLiterals;
    const uint8_t* at = begin + 1;
    uint32_t tries = 1u << kTriesShift;
    while (at <= last_start) {
      const auto four = load_le<uint32_t>(at);
      uint16_t& place = table.positions[hash(four)];
      const uint8_t* from = begin + place;
      place = static_cast<uint16_t>(at - begin);
      if (load_le<uint32_t>(from) != four) {
        at += tries++ >> kTriesShift;
        continue;
      }
      tries = 1u << kTriesShift;
      while (at > literals && from > begin && at[-1] == from[-1]) {
        --at;
        --from;
      }
      const size_t length = kMinMatch + common_bytes(at + kMinMatch, from + kMinMatch, match_end);
      if (!writer.put(literals, static_cast<size_t>(at - literals), static_cast<size_t>(at - from),
                      length)) {
        return 0;
      }
      at += length;
      literals = at;
      table.positions[hash(load_le<uint32_t>(at - 2))] = static_cast<uint16_t>(at - 2 - begin);
    }
  }
  if (!writer.put(literals, static_cast<size_t>(end - literals), 0, 0)) return 0;
  return writer.size();
}

bool lz4_decompress(Bytes input, MutableBytes output) {
  size_t at = 0;
  size_t done = 0;
  while (at < input.size()) {
    const uint8_t token = input[at++];
    size_t count = token >> 4;
    if (!take_length(input, at, count)) return false;
    if (count > input.size() - at || count > output.size() - done) return false;
    if (count != 0) std::memcpy(output.data() + done, input.data() + at, count);
    at += count;
    done += count;
    if (at == input.size()) return done == output.size();
    if (input.size() - at < sizeof(uint16_t)) return false;
    const size_t offset = load_le<uint16_t>(input.data() + at);
    at += sizeof(uint16_t);
    size_t length = token & kNibble;
    if (!take_length(input, at, length)) return false;
    length += kMinMatch;
    if (offset == 0 || offset > done || length > output.size() - done) return false;
    copy_match(output.data() + done, offset, length);
    done += length;
  }
  return false;  // a block ends with literals
}

}  // namespace collect::wire
