#include "daemon/ingest/page_unpacker.h"

#include "daemon/ingest/limits.h"
#include "formats/core/crc32.h"
#include "proto/wire/page_codec.h"

namespace collect::ingest {

bool PageUnpacker::has_room(const ArrivedPage& arrived) const {
  return arrived.codec == wire::Codec::kRaw || arrived.raw_bytes <= kUnpackBytes - used_;
}

Result<storage::Page> PageUnpacker::unpack(const ArrivedPage& arrived) {
  if (arrived.codec == wire::Codec::kRaw) return arrived.page;
  COLLECT_CHECK(has_room(arrived));
  if (!records_) {
    records_ = std::make_unique_for_overwrite<uint8_t[]>(kUnpackBytes);
    scratch_ = std::make_unique_for_overwrite<uint8_t[]>(kUnpackBytes);
  }
  storage::Page page = arrived.page;
  const MutableBytes records(records_.get() + used_, arrived.raw_bytes);
  const wire::PageCodecError error =
      wire::decode_page(static_cast<wire::Lane>(page.lane), page.record_count, page.bytes,
                        MutableBytes(scratch_.get(), kUnpackBytes), records);
  if (error != wire::PageCodecError::kNone) {
    return Error{Code::kDamaged, "page of stream " + std::to_string(page.stream_id) +
                                     " from record " + std::to_string(page.first_seq) + ": " +
                                     wire::page_codec_error_text(error)};
  }
  used_ += records.size();
  page.encoded = page.bytes;
  page.bytes = records;
  page.bytes_crc32c = crc32c(records);
  return page;
}

}  // namespace collect::ingest
