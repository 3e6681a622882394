#include "daemon/ingest/session/lane_buffers.h"

#include <fmt/core.h>

#include <utility>

#include "daemon/ingest/link/limits.h"
#include "formats/core/crc32.h"
#include "proto/wire/page_codec.h"

namespace collect::ingest {

bool PageUnpacker::has_room(const Page& sent) const {
  if (sent.codec == Codec::kRaw) return true;
  return used_ == 0 ? sent.raw_bytes <= kUnpackBytes : used_ + sent.raw_bytes <= kDecodedRunBytes;
}

Result<Page> PageUnpacker::unpack(const Page& sent) {
  if (sent.codec == Codec::kRaw) return sent;
  COLLECT_CHECK(has_room(sent));
  if (!records_) {
    records_ = std::make_unique_for_overwrite<uint8_t[]>(kUnpackBytes);
    scratch_ = std::make_unique_for_overwrite<uint8_t[]>(kUnpackBytes);
  }
  Page page = sent;
  const MutableBytes records(records_.get() + used_, sent.raw_bytes);
  const wire::PageCodecError error =
      wire::decode_page(page, page.bytes, MutableBytes(scratch_.get(), kUnpackBytes), records);
  if (error != wire::PageCodecError::kNone) {
    return Error{Code::kDamaged, fmt::format("page of stream {} from record {}: {}", page.stream_id,
                                             page.first_seq, wire::page_codec_error_text(error))};
  }
  used_ += records.size();
  page.encoded_by = std::exchange(page.codec, Codec::kRaw);
  page.encoded = page.bytes;
  page.bytes = records;
  page.bytes_crc32c = crc32c(records);
  return page;
}

}  // namespace collect::ingest
