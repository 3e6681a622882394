#include <algorithm>
#include <cstring>

#include "proto/wire/page_codec.h"
#include "proto/wire/page_layout.h"

namespace collect::wire {
namespace {

// Where a page's records begin.
struct IndexRecords {
  const uint8_t* records;
  const uint8_t* at(uint32_t i) const { return records + size_t{i} * kIndexFixed; }
};
struct DetailRecords {
  const uint8_t* records;
  const uint32_t* offsets;
  const uint8_t* at(uint32_t i) const { return records + offsets[i]; }
};

template <Grows kGrows, typename Records>
uint64_t row_of(const Records& records, uint32_t i, uint32_t word) {
  return difference<kGrows>(load_le<uint64_t>(records.at(i) + word * 8),
                            load_le<uint64_t>(records.at(i - 1) + word * 8));
}

// Half as much to load where only the lower half varies, as it does nearly always.
template <typename Word>
void gather(const Word* rows, uint32_t count, uint32_t shift, uint8_t* column) {
  for (uint32_t row = 0; row < count; ++row) column[row] = static_cast<uint8_t>(rows[row] >> shift);
}

template <Grows kGrows, typename Records>
uint8_t* put_columns(const Records& records, uint32_t count, uint32_t word, uint64_t varying,
                     uint8_t* out) {
  uint32_t shifts[8];
  const uint32_t columns = shifts_of(varying, shifts);
  const uint32_t rows = count - 1;
  for (uint32_t first = 0; first < rows; first += kBlockRecords) {
    const uint32_t some = std::min(rows - first, kBlockRecords);
    if (varying <= kLowHalf) {
      uint32_t halves[kBlockRecords];
      for (uint32_t row = 0; row < some; ++row) {
        halves[row] = static_cast<uint32_t>(row_of<kGrows>(records, first + row + 1, word));
      }
      for (uint32_t c = 0; c < columns; ++c) {
        gather(halves, some, shifts[c], out + size_t{c} * rows + first);
      }
    } else {
      uint64_t words[kBlockRecords];
      for (uint32_t row = 0; row < some; ++row) {
        words[row] = row_of<kGrows>(records, first + row + 1, word);
      }
      for (uint32_t c = 0; c < columns; ++c) {
        gather(words, some, shifts[c], out + size_t{c} * rows + first);
      }
    }
  }
  return out + size_t{columns} * rows;
}

// The fixed parts as WIRE.md "Page codecs" has them; the end of what was written, and which bytes
// vary.
template <typename Records>
uint8_t* put_fixed(Lane lane, const Records& records, uint32_t count, uint8_t* out,
                   uint32_t* mask) {
  const uint32_t fixed = fixed_of(lane);
  std::memcpy(out, records.at(0), fixed);
  out += fixed;
  *mask = 0;
  if (count == 1) return out;
  uint64_t varying[kMostFixed / 8] = {};
  for_each_word(lane, [&]<Grows kGrows>(uint32_t word) {
    const uint64_t second = row_of<kGrows>(records, 1, word);
    uint64_t differs = 0;
    for (uint32_t i = 2; i < count; ++i) differs |= row_of<kGrows>(records, i, word) ^ second;
    varying[word] = differs;
    for (uint32_t byte = 0; byte < 8; ++byte) {
      if ((differs >> (byte * 8) & 0xFF) != 0) {
        *mask |= 1u << (word * 8 + byte);
      } else {
        *out++ = static_cast<uint8_t>(second >> (byte * 8));
      }
    }
  });
  for_each_word(lane, [&]<Grows kGrows>(uint32_t word) {
    out = put_columns<kGrows>(records, count, word, varying[word], out);
  });
  return out;
}

// Where detail records begin. False when the lengths are not those of `count` whole records.
bool find_detail(Bytes records, uint32_t count, uint32_t* offsets) {
  size_t at = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const size_t left = records.size() - at;
    if (left < kDetailFixed) return false;
    const auto length = load_le<uint32_t>(records.data() + at);
    if (length < kDetailFixed || length > left) return false;
    offsets[i] = static_cast<uint32_t>(at);
    at += length;
  }
  return at == records.size();
}

}  // namespace

size_t ColumnEncoder::encode(Lane lane, uint32_t record_count, Bytes records, MutableBytes out) {
  if (records.size() > kMaxEncodedPage || record_count == 0) return 0;
  if (record_count > records.size() / fixed_of(lane) || out.size() < kMaskBytes) return 0;
  uint8_t* end = nullptr;
  uint32_t mask = 0;
  if (lane == Lane::kIndex) {
    if (size_t{record_count} * kIndexFixed != records.size()) return 0;
    end = put_fixed(lane, IndexRecords{records.data()}, record_count, columns_, &mask);
  } else {
    if (!find_detail(records, record_count, offsets_)) return 0;
    end = put_fixed(lane, DetailRecords{records.data(), offsets_}, record_count, columns_, &mask);
    for (uint32_t i = 0; i < record_count; ++i) {
      const size_t next = i + 1 < record_count ? offsets_[i + 1] : records.size();
      const size_t behind = next - offsets_[i] - kDetailFixed;
      if (behind != 0) std::memcpy(end, records.data() + offsets_[i] + kDetailFixed, behind);
      end += behind;
    }
  }
  store_le(out.data(), mask);
  const size_t room = std::min(out.size(), records.size() - 1) - kMaskBytes;
  const size_t size = lz4_compress(Bytes(columns_, static_cast<size_t>(end - columns_)),
                                   out.subspan(kMaskBytes, room), table_);
  return size == 0 ? 0 : kMaskBytes + size;
}

}  // namespace collect::wire
