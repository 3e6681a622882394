// Any bytes as a packed page of a container: whole records or a refusal. What comes out is packed
// again, and comes back the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "storage/container/page_packing.h"
#include "tests/fuzz/proto/any_codec.h"

namespace {

using collect::Bytes;
using collect::Lane;

void pack_again(Lane lane, uint32_t record_count, const std::vector<uint8_t>& records) {
  collect::Page page;
  page.lane = lane;
  page.record_count = record_count;
  page.raw_bytes = static_cast<uint32_t>(records.size());
  page.bytes = records;
  const collect::storage::PackedPage packed = collect::storage::pack_page(page);
  if (packed.bytes.empty()) return;
  page.codec = packed.codec;
  const std::vector<uint8_t> sent(packed.bytes.begin(), packed.bytes.end());
  std::vector<uint8_t> again;
  if (sent.size() >= records.size() || !collect::storage::unpack_page(page, sent, again) ||
      again != records) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr uint32_t kLargest = 1u << 18;
  collect::ByteReader reader(Bytes(data, size));
  collect::PageHeader header;
  const uint8_t flags = reader.u8();
  header.lane = (flags & 1) == 0 ? Lane::kIndex : Lane::kDetail;
  header.codec = collect::wire::any_codec(flags >> 1);
  header.raw_bytes = reader.u32() % kLargest;
  header.record_count = reader.u32() % (header.raw_bytes / 16 + 1);
  if (!reader.ok()) return 0;
  const std::vector<uint8_t> sent(data + reader.offset(), data + size);
  std::vector<uint8_t> records;
  if (collect::storage::unpack_page(header, sent, records)) {
    pack_again(header.lane, header.record_count, records);
  }
  pack_again(Lane::kDetail, header.record_count, sent);
  pack_again(Lane::kIndex, header.record_count, sent);
  return 0;
}
