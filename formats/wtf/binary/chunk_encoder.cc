#include "formats/wtf/binary/chunk_encoder.h"

#include <fmt/core.h>

#include <string>
#include <vector>

namespace collect::wtf {
Status write_file_header(ByteSink& sink, uint32_t tool_version) {
  std::vector<uint8_t> out;
  put_word(out, kMagic);
  put_word(out, tool_version);
  put_word(out, kFormatVersion);
  return sink.write(out);
}

Status write_chunk(ByteSink& sink, const ChunkOut& chunk, std::span<const PartOut> parts) {
  uint64_t length = kChunkHeaderBytes + parts.size() * kPartEntryBytes;
  for (const PartOut& part : parts) length += padded(part.bytes.size());
  if (length > UINT32_MAX) {
    return Error{Code::kLimit, fmt::format("a chunk of {} bytes", length)};
  }
  std::vector<uint8_t> head;
  for (const uint32_t word : {chunk.id, chunk.type, static_cast<uint32_t>(length), chunk.start_time,
                              chunk.end_time, static_cast<uint32_t>(parts.size())}) {
    put_word(head, word);
  }
  uint64_t offset = 0;
  for (const PartOut& part : parts) {
    put_word(head, part.type);
    put_word(head, static_cast<uint32_t>(offset));
    put_word(head, static_cast<uint32_t>(part.bytes.size()));
    offset += padded(part.bytes.size());
  }
  COLLECT_TRY(sink.write(head));
  constexpr uint8_t kZeros[3] = {};
  for (const PartOut& part : parts) {
    if (!part.bytes.empty()) COLLECT_TRY(sink.write(part.bytes));
    const uint64_t padding = padded(part.bytes.size()) - part.bytes.size();
    if (padding != 0) COLLECT_TRY(sink.write(Bytes(kZeros, padding)));
  }
  return {};
}

}  // namespace collect::wtf
