#include "proto/wire/page_codec.h"

#include <algorithm>
#include <cstring>

namespace collect::wire {
namespace {

// A record's fixed part: index records are nothing else, behind that of detail records stands a
// payload.
constexpr uint32_t kIndexFixed = 32;
constexpr uint32_t kDetailFixed = 24;
// So many records are turned at a time: they stay in the nearest cache.
constexpr uint32_t kBlockRecords = 256;

// The fields that become differences, each to the same field of the record before: time and detail
// number, or index number. Both versions of the records have them at these places.
struct Previous {
  uint64_t time = 0;
  uint32_t low = 0;   // index: at 16; detail: at 8
  uint32_t last = 0;  // index: at 28
};

// The fixed parts of a block, word by word: words[w][row].
using BlockWords = uint64_t[kIndexFixed / 8][kBlockRecords];

constexpr uint64_t kLowHalf = 0xFFFFFFFF;

void index_words(const uint8_t* record, uint32_t row, BlockWords& words, Previous& previous) {
  const auto time = load_le<uint64_t>(record);
  const auto third = load_le<uint64_t>(record + 16);
  const auto fourth = load_le<uint64_t>(record + 24);
  const auto low = static_cast<uint32_t>(third);
  const auto last = static_cast<uint32_t>(fourth >> 32);
  words[0][row] = time - previous.time;
  words[1][row] = load_le<uint64_t>(record + 8);
  words[2][row] = (third & ~kLowHalf) | static_cast<uint32_t>(low - previous.low);
  words[3][row] = (fourth & kLowHalf) | uint64_t{static_cast<uint32_t>(last - previous.last)} << 32;
  previous = {time, low, last};
}

void detail_words(const uint8_t* record, uint32_t row, BlockWords& words, Previous& previous) {
  const auto second = load_le<uint64_t>(record + 8);
  const auto time = load_le<uint64_t>(record + 16);
  const auto low = static_cast<uint32_t>(second);
  words[0][row] = load_le<uint64_t>(record);
  words[1][row] = (second & ~kLowHalf) | static_cast<uint32_t>(low - previous.low);
  words[2][row] = time - previous.time;
  previous = {time, low, 0};
}

// The reverse, record by record.
void write_index(const BlockWords& words, uint32_t row, uint8_t* record, Previous& previous) {
  previous.time += words[0][row];
  previous.low += static_cast<uint32_t>(words[2][row]);
  previous.last += static_cast<uint32_t>(words[3][row] >> 32);
  store_le(record, previous.time);
  store_le(record + 8, words[1][row]);
  store_le(record + 16, (words[2][row] & ~kLowHalf) | previous.low);
  store_le(record + 24, (words[3][row] & kLowHalf) | uint64_t{previous.last} << 32);
}

void write_detail(const BlockWords& words, uint32_t row, uint8_t* record, Previous& previous) {
  previous.low += static_cast<uint32_t>(words[1][row]);
  previous.time += words[2][row];
  store_le(record, words[0][row]);
  store_le(record + 8, (words[1][row] & ~kLowHalf) | previous.low);
  store_le(record + 16, previous.time);
}

// Most bytes are the same in all records of a block: those columns need not be gathered.
template <uint32_t kFixed>
void words_to_columns(const BlockWords& words, uint32_t rows_count, uint8_t* columns,
                      size_t stride) {
  for (uint32_t word = 0; word < kFixed / 8; ++word) {
    const uint64_t* const values = words[word];
    uint64_t varying = 0;
    for (uint32_t row = 1; row < rows_count; ++row) varying |= values[row] ^ values[0];
    for (uint32_t byte = 0; byte < 8; ++byte) {
      uint8_t* const column = columns + (word * 8 + byte) * stride;
      const uint32_t shift = byte * 8;
      if ((varying >> shift & 0xFF) == 0) {
        std::memset(column, static_cast<int>(values[0] >> shift & 0xFF), rows_count);
      } else {
        for (uint32_t row = 0; row < rows_count; ++row) {
          column[row] = static_cast<uint8_t>(values[row] >> shift);
        }
      }
    }
  }
}

template <uint32_t kFixed>
void columns_to_words(const uint8_t* columns, size_t stride, uint32_t rows_count,
                      BlockWords& words) {
  for (uint32_t word = 0; word < kFixed / 8; ++word) {
    uint64_t* const values = words[word];
    uint64_t same = 0;
    uint64_t varying = 0;
    for (uint32_t byte = 0; byte < 8; ++byte) {
      const uint8_t* const column = columns + (word * 8 + byte) * stride;
      const bool varies = std::memcmp(column, column + 1, rows_count - 1) != 0;
      (varies ? varying : same) |= uint64_t{varies ? 0xFFu : column[0]} << (byte * 8);
    }
    for (uint32_t row = 0; row < rows_count; ++row) values[row] = same;
    for (uint32_t byte = 0; byte < 8; ++byte) {
      const uint32_t shift = byte * 8;
      if ((varying >> shift & 0xFF) == 0) continue;
      const uint8_t* const column = columns + (word * 8 + byte) * stride;
      for (uint32_t row = 0; row < rows_count; ++row) {
        values[row] |= uint64_t{column[row]} << shift;
      }
    }
  }
}

void index_to_columns(const uint8_t* records, uint32_t count, uint8_t* columns) {
  BlockWords words;
  Previous previous;
  for (uint32_t first = 0; first < count; first += kBlockRecords) {
    const uint32_t some = std::min(count - first, kBlockRecords);
    for (uint32_t row = 0; row < some; ++row) {
      index_words(records + size_t{first + row} * kIndexFixed, row, words, previous);
    }
    words_to_columns<kIndexFixed>(words, some, columns + first, count);
  }
}

void columns_to_index(const uint8_t* columns, uint32_t count, uint8_t* records) {
  BlockWords words;
  Previous previous;
  for (uint32_t first = 0; first < count; first += kBlockRecords) {
    const uint32_t some = std::min(count - first, kBlockRecords);
    columns_to_words<kIndexFixed>(columns + first, count, some, words);
    for (uint32_t row = 0; row < some; ++row) {
      write_index(words, row, records + size_t{first + row} * kIndexFixed, previous);
    }
  }
}

// False when the lengths are not those of `count` whole records.
bool detail_to_columns(Bytes records, uint32_t count, uint8_t* columns) {
  BlockWords words;
  Previous previous;
  uint8_t* payload = columns + size_t{count} * kDetailFixed;
  size_t at = 0;
  for (uint32_t first = 0; first < count; first += kBlockRecords) {
    const uint32_t some = std::min(count - first, kBlockRecords);
    for (uint32_t row = 0; row < some; ++row) {
      const size_t left = records.size() - at;
      // The headers of the records that follow have to fit too, or the payloads would not.
      const size_t others = size_t{count - first - row - 1} * kDetailFixed;
      if (left < kDetailFixed + others) return false;
      const auto length = load_le<uint32_t>(records.data() + at);
      if (length < kDetailFixed || length > left - others) return false;
      detail_words(records.data() + at, row, words, previous);
      std::memcpy(payload, records.data() + at + kDetailFixed, length - kDetailFixed);
      payload += length - kDetailFixed;
      at += length;
    }
    words_to_columns<kDetailFixed>(words, some, columns + first, count);
  }
  return at == records.size();
}

bool columns_to_detail(Bytes columns, uint32_t count, MutableBytes records) {
  BlockWords words;
  Previous previous;
  Bytes payload = columns.subspan(size_t{count} * kDetailFixed);
  size_t at = 0;
  for (uint32_t first = 0; first < count; first += kBlockRecords) {
    const uint32_t some = std::min(count - first, kBlockRecords);
    columns_to_words<kDetailFixed>(columns.data() + first, count, some, words);
    for (uint32_t row = 0; row < some; ++row) {
      const auto length = static_cast<uint32_t>(words[0][row]);
      if (length < kDetailFixed || length - kDetailFixed > payload.size()) return false;
      const size_t behind = length - kDetailFixed;
      write_detail(words, row, records.data() + at, previous);
      if (behind != 0) std::memcpy(records.data() + at + kDetailFixed, payload.data(), behind);
      payload = payload.subspan(behind);
      at += length;
    }
  }
  return payload.empty();
}

}  // namespace

size_t PageEncoder::encode(Lane lane, uint32_t record_count, Bytes records, MutableBytes out) {
  if (records.size() > kMaxEncodedPage || record_count == 0) return 0;
  if (lane == Lane::kIndex) {
    if (size_t{record_count} * kIndexFixed != records.size()) return 0;
    index_to_columns(records.data(), record_count, columns_);
  } else if (!detail_to_columns(records, record_count, columns_)) {
    return 0;
  }
  const size_t room = out.size() < records.size() ? out.size() : records.size() - 1;
  return lz4_compress(Bytes(columns_, records.size()), out.first(room), table_);
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
  const uint32_t fixed = lane == Lane::kIndex ? kIndexFixed : kDetailFixed;
  if (scratch.size() < records.size() || records.size() / fixed < record_count) {
    return PageCodecError::kRecords;
  }
  const MutableBytes columns = scratch.first(records.size());
  if (!lz4_decompress(sent, columns)) return PageCodecError::kBlock;
  if (lane == Lane::kIndex) {
    if (records.size() != size_t{record_count} * fixed) return PageCodecError::kRecords;
    columns_to_index(columns.data(), record_count, records.data());
    return PageCodecError::kNone;
  }
  return columns_to_detail(columns, record_count, records) ? PageCodecError::kNone
                                                           : PageCodecError::kRecords;
}

}  // namespace collect::wire
