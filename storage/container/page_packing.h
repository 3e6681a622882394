// Pages as containers hold them: blocks of whole records, each encoded (proto/wire/page_codec.h) by
// the codec of the page's header where that is smaller. Calls and returns take a tenth to a
// twentieth of their bytes so. Index pages are made tuples, which takes a third of the time;
// columns are for detail pages, and for index pages that are no tuples.
//
//   block   u32 record_count, u32 raw_bytes, u32 sent_bytes   little-endian
//           sent_bytes bytes: encoded, or the records as they are when it is raw_bytes
//
// Those of a packed session are compressed once more, all blocks of a page as one zstd frame: then
// the codec of the page's header has the bit kCompressedBlocks.
//
// Scratch memory is the calling thread's, and stays with it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "formats/core/bytes.h"
#include "storage/model/session_types.h"

namespace collect::storage {

inline constexpr uint8_t kCompressedBlocks = 0x80;

struct PackedPage {
  Bytes
      bytes;  // blocks, valid until the thread's next call; empty: no smaller than the page itself
  Codec codec = Codec::kRaw;  // for the page's header
};

enum class Packing : uint8_t {
  kQuick,  // while it is recorded
  kSmall,  // for what is kept: compressed once more
};

// The page's records as blocks. What came encoded is one block, and costs nothing.
PackedPage pack_page(const Page& page, Packing packing = Packing::kQuick);

// What a page of kCompressedBlocks has: its blocks, valid until the thread's next call. Nothing:
// that is no zstd frame, or it says that it has more than `most` bytes.
std::optional<Bytes> decompress_blocks(Bytes sent, size_t most);

// The reverse, of any bytes and any header. False when they are no blocks of `record_count` records
// and `raw_bytes` bytes, which is at most kMaxPageBytes.
bool unpack_page(const PageHeader& header, Bytes packed, std::vector<uint8_t>& records);
// The same into a place of `raw_bytes` bytes.
bool unpack_page(const PageHeader& header, Bytes packed, MutableBytes records);

}  // namespace collect::storage
