#include <algorithm>
#include <bit>
#include <cstring>

#include "proto/wire/page_codec.h"
#include "proto/wire/page_layout.h"

namespace collect::wire {
namespace {

// Bytes, then bits, into `out`, as far as there is room.
class BitWriter {
 public:
  explicit BitWriter(MutableBytes out) : begin_(out.data()), at_(begin_), left_(out.size()) {}

  bool put(const void* bytes, size_t size) {
    if (size > left_) return false;
    std::memcpy(at_, bytes, size);
    advance(size);
    return true;
  }
  template <class T>
  bool put(T value) {
    uint8_t bytes[sizeof value];
    store_le(bytes, value);
    return put(bytes, sizeof bytes);
  }
  // `value(i)` for each of `count`, `bits` of each, at most kMaxTupleBits. Whole words are stored,
  // so there has to be room for one more. As many at once as a word takes: what each step waits for
  // is the one before it.
  template <class Value>
  bool put_bits(uint32_t count, uint32_t bits, const Value& value) {
    const size_t size = (size_t{count} * bits + 7) / 8;
    if (size + sizeof(uint64_t) > left_) return false;
    Bits out{at_};
    uint32_t i = 0;
    if (bits <= kMaxTupleBits / 4) {
      for (; i + 4 <= count; i += 4) {
        const uint64_t low = value(i) | value(i + 1) << bits;
        const uint64_t high = value(i + 2) | value(i + 3) << bits;
        out.put(low | high << 2 * bits, 4 * bits);
      }
    } else if (bits <= kMaxTupleBits / 2) {
      for (; i + 2 <= count; i += 2) out.put(value(i) | value(i + 1) << bits, 2 * bits);
    }
    for (; i < count; ++i) out.put(value(i), bits);
    advance(size);
    return true;
  }
  size_t size() const { return static_cast<size_t>(at_ - begin_); }

 private:
  struct Bits {
    uint8_t* at;
    uint64_t waiting = 0;
    uint32_t filled = 0;  // bits of `waiting`, less than 8

    void put(uint64_t value, uint32_t bits) {
      waiting |= value << filled;
      store_le(at, waiting);
      filled += bits;
      at += filled / 8;
      // By 64 at once would be undefined.
      waiting = waiting >> (filled / 8 * 4) >> (filled / 8 * 4);
      filled %= 8;
    }
  };

  void advance(size_t size) {
    at_ += size;
    left_ -= size;
  }

  uint8_t* const begin_;
  uint8_t* at_;
  size_t left_;
};

uint64_t hash_of(uint64_t first, uint64_t second, uint64_t third) {
  return (first ^ std::rotl(second, 21) ^ std::rotl(third, 43)) * 0x9E3779B97F4A7C15u;
}

bool is_same(const uint64_t* tuple, uint64_t first, uint64_t second, uint64_t third) {
  return ((tuple[0] ^ first) | (tuple[1] ^ second) | (tuple[2] ^ third)) == 0;
}

}  // namespace

bool TupleEncoder::find_tuples(uint32_t record_count, const uint8_t* record) {
  constexpr uint32_t kHashShift = 64 - std::bit_width(kSlots - 1);
  std::memset(slots_, 0, sizeof slots_);
  tuple_count_ = 0;
  uint64_t before = load_le<uint64_t>(record);
  for (uint32_t i = 0; i < record_count; ++i, record += kIndexFixed) {
    const auto time = load_le<uint64_t>(record);
    differences_[i] = time - before;
    before = time;
    const auto first = load_le<uint64_t>(record + 8);
    const auto second = load_le<uint64_t>(record + 16);
    const auto third = load_le<uint64_t>(record + 24);
    auto slot = static_cast<uint32_t>(hash_of(first, second, third) >> kHashShift);
    uint32_t place = slots_[slot];
    while (place != 0 && !is_same(tuples_[place - 1], first, second, third)) {
      slot = (slot + 1) % kSlots;
      place = slots_[slot];
    }
    if (place == 0) {
      if (tuple_count_ == kMaxTuples) return false;
      uint64_t* const tuple = tuples_[tuple_count_];
      tuple[0] = first;
      tuple[1] = second;
      tuple[2] = third;
      place = ++tuple_count_;
      slots_[slot] = static_cast<uint16_t>(place);
    }
    places_[i] = static_cast<uint16_t>(place - 1);
  }
  return true;
}

size_t TupleEncoder::encode(uint32_t record_count, Bytes records, MutableBytes out) {
  if (records.size() > kMaxEncodedPage || record_count == 0) return 0;
  if (size_t{record_count} * kIndexFixed != records.size()) return 0;
  if (!find_tuples(record_count, records.data())) return 0;

  BitWriter writer(out.first(std::min(out.size(), records.size() - 1)));
  uint8_t first[kTupleBytes];
  uint64_t varying[3] = {};
  for (uint32_t word = 0; word < 3; ++word) {
    store_le(first + word * 8, tuples_[0][word]);
    for (uint32_t i = 1; i < tuple_count_; ++i)
      varying[word] |= tuples_[i][word] ^ tuples_[0][word];
  }
  uint32_t mask = 0;
  for (uint32_t byte = 0; byte < kTupleBytes; ++byte) {
    if ((varying[byte / 8] >> (byte % 8 * 8) & 0xFF) != 0) mask |= 1u << byte;
  }
  if (!writer.put(static_cast<uint16_t>(tuple_count_)) ||
      !writer.put(load_le<uint64_t>(records.data())) || !writer.put(first, sizeof first) ||
      !writer.put(mask)) {
    return 0;
  }
  for (uint32_t i = 1; i < tuple_count_; ++i) {
    uint8_t bytes[kTupleBytes];
    size_t size = 0;
    for (uint32_t left = mask; left != 0; left &= left - 1) {
      const auto byte = static_cast<uint32_t>(std::countr_zero(left));
      bytes[size++] = static_cast<uint8_t>(tuples_[i][byte / 8] >> (byte % 8 * 8));
    }
    if (!writer.put(bytes, size)) return 0;
  }

  const auto place_bits = static_cast<uint32_t>(std::bit_width(tuple_count_ - 1));
  for (uint32_t block = 0; block < record_count; block += kTupleBlock) {
    const uint32_t count = std::min(record_count - block, kTupleBlock);
    uint64_t any = 0;
    for (uint32_t i = 0; i < count; ++i) any |= differences_[block + i];
    const auto width = static_cast<uint32_t>(std::bit_width(any));
    if (width + place_bits > kMaxTupleBits) return 0;
    const auto value = [&](uint32_t i) {
      return differences_[block + i] << place_bits | places_[block + i];
    };
    if (!writer.put(static_cast<uint8_t>(width)) ||
        !writer.put_bits(count, width + place_bits, value)) {
      return 0;
    }
  }
  return writer.size();
}

}  // namespace collect::wire
