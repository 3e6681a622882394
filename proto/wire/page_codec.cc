#include "proto/wire/page_codec.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace collect::wire {
namespace {

// A record's fixed part: index records are nothing else, behind that of detail records stands a
// payload.
constexpr uint32_t kIndexFixed = 32;
constexpr uint32_t kDetailFixed = 24;
constexpr uint32_t kMostFixed = kIndexFixed;
constexpr uint32_t kMaskBytes = 4;
// So many records are turned at a time: they stay in the nearest cache.
constexpr uint32_t kBlockRecords = 256;

constexpr uint64_t kLowHalf = 0xFFFFFFFF;

constexpr uint32_t fixed_of(Lane lane) {
  return lane == Lane::kIndex ? kIndexFixed : kDetailFixed;
}

// What of a word becomes the difference to the record before: times, and the numbers of index and
// detail records. Both versions of the records have them at these places.
enum class Grows : uint8_t { kNothing, kWord, kLow, kHigh };

template <Grows kGrows>
uint64_t difference(uint64_t now, uint64_t before) {
  if constexpr (kGrows == Grows::kWord) return now - before;
  if constexpr (kGrows == Grows::kLow) return (now & ~kLowHalf) | ((now - before) & kLowHalf);
  if constexpr (kGrows == Grows::kHigh) return now - (before & ~kLowHalf);
  return now;
}

template <Grows kGrows>
uint64_t sum(uint64_t difference, uint64_t before) {
  if constexpr (kGrows == Grows::kWord) return difference + before;
  if constexpr (kGrows == Grows::kLow) {
    return (difference & ~kLowHalf) | ((difference + before) & kLowHalf);
  }
  if constexpr (kGrows == Grows::kHigh) return difference + (before & ~kLowHalf);
  return difference;
}

// Calls `visit.operator()<grows>(word)` for each word of the lane's fixed part.
template <typename Visit>
void for_each_word(Lane lane, const Visit& visit) {
  if (lane == Lane::kIndex) {
    visit.template operator()<Grows::kWord>(0u);
    visit.template operator()<Grows::kNothing>(1u);
    visit.template operator()<Grows::kLow>(2u);
    visit.template operator()<Grows::kHigh>(3u);
  } else {
    visit.template operator()<Grows::kNothing>(0u);
    visit.template operator()<Grows::kLow>(1u);
    visit.template operator()<Grows::kWord>(2u);
  }
}

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

// The bytes of a word that are not 0 in `varying`, as shifts; how many.
uint32_t shifts_of(uint64_t varying, uint32_t (&shifts)[8]) {
  uint32_t count = 0;
  for (uint32_t shift = 0; shift < 64; shift += 8) {
    if ((varying >> shift & 0xFF) != 0) shifts[count++] = shift;
  }
  return count;
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

template <typename Word>
void spread(const uint8_t* column, uint32_t count, uint32_t shift, Word* rows) {
  for (uint32_t row = 0; row < count; ++row) rows[row] |= Word{column[row]} << shift;
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

// How long that is.
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

size_t PageEncoder::encode(Lane lane, uint32_t record_count, Bytes records, MutableBytes out) {
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

const char* page_codec_error_text(PageCodecError error) {
  switch (error) {
    case PageCodecError::kNone:
      return "no error";
    case PageCodecError::kBlock:
      return "an encoded page is no LZ4 block of the length that its header says";
    case PageCodecError::kRecords:
      return "the records of an encoded page are not as long as its header says";
  }
  return "unknown page codec error";
}

PageCodecError decode_page(Lane lane, uint32_t record_count, Bytes sent, MutableBytes scratch,
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
