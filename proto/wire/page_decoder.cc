#include <algorithm>
#include <bit>
#include <cstring>

#include "proto/wire/page_codec.h"
#include "proto/wire/page_layout.h"

namespace collect::wire {
namespace {

template <typename Word>
void spread(const uint8_t* column, uint32_t count, uint32_t shift, Word* rows) {
  for (uint32_t row = 0; row < count; ++row) rows[row] |= Word{column[row]} << shift;
}

// How long the fixed parts are, encoded.
size_t fixed_bytes(uint32_t fixed, uint32_t count, uint32_t mask) {
  if (count <= 1) return size_t{count} * fixed;
  const auto columns = static_cast<uint32_t>(std::popcount(mask));
  return size_t{fixed} + (fixed - columns) + size_t{columns} * (count - 1);
}

// Takes the fixed parts apart again, some rows at a time.
class FixedReader {
 public:
  // `bytes` is fixed_bytes() long; there is a record.
  FixedReader(const uint8_t* bytes, uint32_t fixed, uint32_t count, uint32_t mask)
      : rows_(count - 1), columns_(bytes) {
    for (uint32_t at = 0; at < fixed; ++at)
      before_[at / 8] |= uint64_t{*columns_++} << (at % 8 * 8);
    if (rows_ == 0) return;
    for (uint32_t at = 0; at < fixed; ++at) {
      if ((mask >> at & 1) != 0) {
        varying_[at / 8] |= uint64_t{0xFF} << (at % 8 * 8);
      } else {
        same_[at / 8] |= uint64_t{*columns_++} << (at % 8 * 8);
      }
    }
  }

  uint64_t first(uint32_t word) const { return before_[word]; }

  // The word of the rows from `first` on, which follow those of the last call, one every kStride
  // bytes of `out`.
  template <Grows kGrows, size_t kStride>
  void take(uint32_t word, uint32_t first, uint32_t some, uint8_t* out) {
    uint32_t shifts[8];
    const uint32_t columns = shifts_of(varying_[word], shifts);
    const uint8_t* const begin = columns_ + size_t{before_columns(word)} * rows_ + first;
    const uint64_t same = same_[word];
    uint64_t before = before_[word];
    const auto put = [&](uint32_t row, uint64_t value) {
      before = sum<kGrows>(value, before);
      store_le(out + row * kStride, before);
    };
    if (columns == 0) {
      for (uint32_t row = 0; row < some; ++row) put(row, same);
    } else if (varying_[word] <= kLowHalf) {
      uint32_t halves[kBlockRecords];
      std::fill_n(halves, some, static_cast<uint32_t>(same));
      for (uint32_t c = 0; c < columns; ++c) {
        spread(begin + size_t{c} * rows_, some, shifts[c], halves);
      }
      for (uint32_t row = 0; row < some; ++row) put(row, (same & ~kLowHalf) | halves[row]);
    } else {
      uint64_t words[kBlockRecords];
      std::fill_n(words, some, same);
      for (uint32_t c = 0; c < columns; ++c) {
        spread(begin + size_t{c} * rows_, some, shifts[c], words);
      }
      for (uint32_t row = 0; row < some; ++row) put(row, words[row]);
    }
    before_[word] = before;
  }

 private:
  uint32_t before_columns(uint32_t word) const {
    uint32_t columns = 0;
    for (uint32_t i = 0; i < word; ++i) {
      columns += static_cast<uint32_t>(std::popcount(varying_[i])) / 8;
    }
    return columns;
  }

  uint32_t rows_;
  const uint8_t* columns_;
  uint64_t before_[kMostFixed / 8] = {};   // the last row taken
  uint64_t varying_[kMostFixed / 8] = {};  // 0xFF in each byte that has a column
  uint64_t same_[kMostFixed / 8] = {};     // the others
};

void read_index(FixedReader& reader, uint32_t count, uint8_t* record) {
  for (uint32_t word = 0; word < kIndexFixed / 8; ++word) {
    store_le(record + word * 8, reader.first(word));
  }
  record += kIndexFixed;
  for (uint32_t first = 0; first < count - 1; first += kBlockRecords) {
    const uint32_t some = std::min(count - 1 - first, kBlockRecords);
    for_each_word(Lane::kIndex, [&]<Grows kGrows>(uint32_t word) {
      reader.take<kGrows, kIndexFixed>(word, first, some, record + word * 8);
    });
    record += size_t{some} * kIndexFixed;
  }
}

// False when the records' lengths are not those of the payload.
bool read_detail(FixedReader& reader, uint32_t count, Bytes payload, MutableBytes records) {
  uint8_t fixed[size_t{kBlockRecords} * kDetailFixed];
  uint8_t* record = records.data();
  const auto put = [&](uint32_t rows) {
    for (uint32_t row = 0; row < rows; ++row) {
      const uint8_t* const from = fixed + size_t{row} * kDetailFixed;
      const auto length = load_le<uint32_t>(from);
      if (length < kDetailFixed || length - kDetailFixed > payload.size()) return false;
      const size_t behind = length - kDetailFixed;
      std::memcpy(record, from, kDetailFixed);
      if (behind != 0) std::memcpy(record + kDetailFixed, payload.data(), behind);
      payload = payload.subspan(behind);
      record += length;
    }
    return true;
  };
  for (uint32_t word = 0; word < kDetailFixed / 8; ++word) {
    store_le(fixed + word * 8, reader.first(word));
  }
  if (!put(1)) return false;
  for (uint32_t first = 0; first < count - 1; first += kBlockRecords) {
    const uint32_t some = std::min(count - 1 - first, kBlockRecords);
    for_each_word(Lane::kDetail, [&]<Grows kGrows>(uint32_t word) {
      reader.take<kGrows, kDetailFixed>(word, first, some, fixed + word * 8);
    });
    if (!put(some)) return false;
  }
  return payload.empty();
}

}  // namespace

const char* page_codec_error_text(PageCodecError error) {
  switch (error) {
    case PageCodecError::kNone:
      return "no error";
    case PageCodecError::kBlock:
      return "an encoded page does not decode to the length that its header says";
    case PageCodecError::kRecords:
      return "the records of an encoded page are not as long as its header says";
  }
  return "unknown page codec error";
}

PageCodecError decode_columns(Lane lane, uint32_t record_count, Bytes sent, MutableBytes scratch,
                              MutableBytes records) {
  const uint32_t fixed = fixed_of(lane);
  if (scratch.size() < records.size() || records.size() / fixed < record_count) {
    return PageCodecError::kRecords;
  }
  const size_t behind = records.size() - size_t{record_count} * fixed;
  if (record_count == 0 || (lane == Lane::kIndex && behind != 0)) return PageCodecError::kRecords;
  if (sent.size() < kMaskBytes) return PageCodecError::kBlock;
  const auto mask = load_le<uint32_t>(sent.data());
  if ((uint64_t{mask} >> fixed) != 0) return PageCodecError::kBlock;
  // Not longer than the records: where every column varies, the first record's are among them.
  const size_t columns = fixed_bytes(fixed, record_count, mask);
  const MutableBytes block = scratch.first(columns + behind);
  if (!lz4_decompress(sent.subspan(kMaskBytes), block)) return PageCodecError::kBlock;
  FixedReader reader(block.data(), fixed, record_count, mask);
  if (lane == Lane::kIndex) {
    read_index(reader, record_count, records.data());
    return PageCodecError::kNone;
  }
  return read_detail(reader, record_count, block.subspan(columns), records)
             ? PageCodecError::kNone
             : PageCodecError::kRecords;
}

}  // namespace collect::wire
