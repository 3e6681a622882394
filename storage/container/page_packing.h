// Pages as containers hold them: blocks of whole records, each encoded (proto/wire/page_codec.h) by
// the codec of the page's header where that is smaller. Calls and returns take a tenth to a
// twentieth of their bytes so. Index pages are made tuples, which takes a third of the time;
// columns are for detail pages, and for index pages that are no tuples.
//
//   block   u32 record_count, u32 raw_bytes, u32 sent_bytes   little-endian
//           sent_bytes bytes: encoded, or the records as they are when it is raw_bytes
//
// Scratch memory is the calling thread's, and stays with it.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/core/bytes.h"
#include "storage/model/session_types.h"

namespace collect::storage {

struct PackedPage {
  Bytes
      bytes;  // blocks, valid until the thread's next call; empty: no smaller than the page itself
  Codec codec = Codec::kRaw;  // for the page's header
};

// The page's records as blocks. What came encoded is one block, and costs nothing.
PackedPage pack_page(const Page& page);

// The reverse, of any bytes and any header. False when they are no blocks of `record_count` records
// and `raw_bytes` bytes, which is at most kMaxPageBytes.
bool unpack_page(const PageHeader& header, Bytes packed, std::vector<uint8_t>& records);
// The same into a place of `raw_bytes` bytes.
bool unpack_page(const PageHeader& header, Bytes packed, MutableBytes records);

}  // namespace collect::storage
