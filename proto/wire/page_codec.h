// The page codecs of WIRE.md "Page codecs". Pure: no allocation, any thread.
//
// Columns make the smaller pages: the bytes of a page's records that vary, differences where
// numbers only grow, and an LZ4 block of that. Tuples take a third of the time: a table of what
// index records are besides their times, and bit by bit for each record a difference of times and
// a place in the table.
#pragma once

#include <cstddef>
#include <cstdint>

#include "formats/core/bytes.h"
#include "proto/wire/codec_rules.h"
#include "proto/wire/lz4_block.h"

namespace collect::wire {

// Pages of agents; a decoder takes those of kMaxPageBytes.
inline constexpr size_t kMaxEncodedPage = kLz4MaxInput;

// Codec::kColumns. Scratch that is used again for each page.
class ColumnEncoder {
 public:
  // Encodes whole records, at most kMaxEncodedPage bytes of them. The size of what was written to
  // `out`, always less than `records.size()`; 0 when there is nothing to gain, or no room: the page
  // is sent raw then.
  size_t encode(Lane lane, uint32_t record_count, Bytes records, MutableBytes out);

 private:
  uint8_t columns_[kMaxEncodedPage];
  uint32_t offsets_[kMaxEncodedPage / 24];  // of detail records, whose fixed part is so long
  Lz4Table table_;
};

inline constexpr uint32_t kMaxTuples = 1024;   // in the table of a page
inline constexpr uint32_t kTupleBytes = 24;    // of an index record, behind its time
inline constexpr uint32_t kTupleBlock = 128;   // records with one width of their differences
inline constexpr uint32_t kMaxTupleBits = 57;  // of a record: one load of 64 bits has them

// Codec::kTuples: the index lane alone. Scratch that is used again for each page.
class TupleEncoder {
 public:
  // As ColumnEncoder's; 0 also when the records have more than kMaxTuples tuples, or times that are
  // too far apart.
  size_t encode(uint32_t record_count, Bytes records, MutableBytes out);

 private:
  static constexpr uint32_t kSlots = 4096;
  static constexpr size_t kMaxRecords = kMaxEncodedPage / 32;

  bool find_tuples(uint32_t record_count, const uint8_t* records);

  uint16_t slots_[kSlots];  // by hash: the tuple's place in the table + 1; 0: none
  uint64_t tuples_[kMaxTuples][3];
  uint32_t tuple_count_;
  uint64_t differences_[kMaxRecords];
  uint16_t places_[kMaxRecords];
};

enum class PageCodecError : uint8_t {
  kNone,
  kBlock,    // it does not decode to raw_bytes bytes
  kRecords,  // the records' lengths contradict the page header
};

const char* page_codec_error_text(PageCodecError error);

// The reverse. `records` has the page header's raw_bytes, which was checked against the limit and
// the record count (as decode_frame does); `scratch` has at least as many. Anything may be in
// `sent`.
PageCodecError decode_columns(Lane lane, uint32_t record_count, Bytes sent, MutableBytes scratch,
                              MutableBytes records);
PageCodecError decode_tuples(uint32_t record_count, Bytes sent, MutableBytes records);

// Decodes by the codec that `header` names; kRecords if its lane has no such pages.
inline PageCodecError decode_page(const PageHeader& header, Bytes sent, MutableBytes scratch,
                                  MutableBytes records) {
  if (!encodes(header.codec, header.lane)) return PageCodecError::kRecords;
  switch (header.codec) {
    case Codec::kColumns:
      return decode_columns(header.lane, header.record_count, sent, scratch, records);
    case Codec::kTuples:
      return decode_tuples(header.record_count, sent, records);
    case Codec::kRaw:
      break;
  }
  return PageCodecError::kRecords;  // nothing to decode
}

}  // namespace collect::wire
