// Codec 1 of WIRE.md "Page codecs": the columns of a page's records that vary, differences where
// numbers only grow, and an LZ4 block of that. Pure: no allocation, any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "formats/core/bytes.h"
#include "proto/wire/layout.h"
#include "proto/wire/lz4_block.h"

namespace collect::wire {

// Pages of agents; a decoder takes those of kMaxPageBytes.
inline constexpr size_t kMaxEncodedPage = kLz4MaxInput;

// Scratch that is used again for each page.
class PageEncoder {
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

enum class PageCodecError : uint8_t {
  kNone,
  kBlock,    // no LZ4 block of raw_bytes bytes
  kRecords,  // the records' lengths contradict the page header
};

const char* page_codec_error_text(PageCodecError error);

// The reverse. `records` has the page header's raw_bytes, which was checked against the limit and
// the record count (as decode_frame does); `scratch` has at least as many. Anything may stand in
// `sent`.
PageCodecError decode_page(Lane lane, uint32_t record_count, Bytes sent, MutableBytes scratch,
                           MutableBytes records);

}  // namespace collect::wire
