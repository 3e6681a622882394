// Writes the outer layers of format version 10: the file header and chunks of parts. writer.h and
// the conversion from JSON stand on it; most callers want writer.h.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "formats/core/byte_sink.h"
#include "formats/core/bytes.h"
#include "formats/wtf/layout.h"

namespace collect::wtf {

struct PartOut {
  uint32_t type = 0;
  Bytes bytes;
};

struct ChunkOut {
  uint32_t id = 0;
  uint32_t type = 0;
  uint32_t start_time = kNoTime;
  uint32_t end_time = kNoTime;
};

inline void put_word(std::vector<uint8_t>& out, uint32_t word) {
  out.resize(out.size() + 4);
  store_le(out.data() + out.size() - 4, word);
}

Status write_file_header(ByteSink& sink, uint32_t tool_version = kToolVersion);

// Parts in order, each padded to 4 bytes with zeros. kLimit, and nothing written, when the chunk
// would be longer than its length field can say.
Status write_chunk(ByteSink& sink, const ChunkOut& chunk, std::span<const PartOut> parts);

}  // namespace collect::wtf
