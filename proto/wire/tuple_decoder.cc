#include <algorithm>
#include <bit>
#include <cstring>

#include "proto/wire/page_codec.h"
#include "proto/wire/page_layout.h"

namespace collect::wire {
namespace {

constexpr size_t kHeadBytes = 2 + 8 + kTupleBytes + 4;

struct Table {
  uint32_t count = 0;
  uint8_t tuples[kMaxTuples][kTupleBytes];
};

// What is in front of the blocks; it is taken off `sent`. False: it is none.
bool read_table(Bytes& sent, uint64_t* time, Table& table) {
  if (sent.size() < kHeadBytes) return false;
  table.count = load_le<uint16_t>(sent.data());
  *time = load_le<uint64_t>(sent.data() + 2);
  std::memcpy(table.tuples[0], sent.data() + 10, kTupleBytes);
  const auto mask = load_le<uint32_t>(sent.data() + 10 + kTupleBytes);
  sent = sent.subspan(kHeadBytes);
  if (table.count == 0 || table.count > kMaxTuples || mask >> kTupleBytes != 0) return false;
  const auto varying = static_cast<size_t>(std::popcount(mask));
  if (sent.size() < (table.count - 1) * varying) return false;
  const uint8_t* at = sent.data();
  for (uint32_t i = 1; i < table.count; ++i) {
    std::memcpy(table.tuples[i], table.tuples[0], kTupleBytes);
    for (uint32_t left = mask; left != 0; left &= left - 1) {
      table.tuples[i][std::countr_zero(left)] = *at++;
    }
  }
  sent = sent.subspan((table.count - 1) * varying);
  return true;
}

}  // namespace

PageCodecError decode_tuples(uint32_t record_count, Bytes sent, MutableBytes records) {
  if (record_count == 0 || records.size() / kIndexFixed != record_count ||
      records.size() % kIndexFixed != 0) {
    return PageCodecError::kRecords;
  }
  Table table;
  uint64_t time = 0;
  if (!read_table(sent, &time, table)) return PageCodecError::kBlock;
  const auto place_bits = static_cast<uint32_t>(std::bit_width(table.count - 1));
  const uint64_t place_mask = (uint64_t{1} << place_bits) - 1;
  uint8_t* record = records.data();
  for (uint32_t block = 0; block < record_count; block += kTupleBlock) {
    const uint32_t count = std::min(record_count - block, kTupleBlock);
    if (sent.empty()) return PageCodecError::kBlock;
    const uint32_t bits = sent[0] + place_bits;
    const size_t size = (size_t{count} * bits + 7) / 8;
    if (bits > kMaxTupleBits || size > sent.size() - 1) return PageCodecError::kBlock;
    const uint8_t* from = sent.data() + 1;
    // Whole words are loaded: at the end of a page, from a copy with room behind it.
    uint8_t copy[kTupleBlock * kMaxTupleBits / 8 + sizeof(uint64_t)];
    if (size + sizeof(uint64_t) > sent.size() - 1) {
      std::memset(copy, 0, sizeof copy);
      std::memcpy(copy, from, size);
      from = copy;
    }
    const uint64_t mask = (uint64_t{1} << bits) - 1;
    uint32_t bit = 0;
    for (uint32_t i = 0; i < count; ++i, bit += bits, record += kIndexFixed) {
      const uint64_t value = load_le<uint64_t>(from + bit / 8) >> (bit % 8) & mask;
      const uint64_t place = value & place_mask;
      if (place >= table.count) return PageCodecError::kBlock;
      time += value >> place_bits;
      store_le(record, time);
      std::memcpy(record + sizeof time, table.tuples[place], kTupleBytes);
    }
    sent = sent.subspan(1 + size);
  }
  return sent.empty() ? PageCodecError::kNone : PageCodecError::kBlock;
}

}  // namespace collect::wire
