// Any bytes as an encoded page: the decoder gives records or refuses them, and never looks or
// writes past an end. What it gives, the encoder takes, and it comes back the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "proto/wire/page_codec.h"
#include "tests/fuzz/proto/any_codec.h"

namespace {

using collect::Bytes;
using collect::Codec;
using collect::Lane;
using collect::MutableBytes;
using collect::wire::PageCodecError;

constexpr size_t kLargest = 1u << 17;

// Exactly as large as they are said to be, so that the sanitizer sees a byte more.
struct Page {
  Lane lane;
  uint32_t record_count;
  std::vector<uint8_t> records;
};

bool decode(Page& page, Codec codec, Bytes sent) {
  collect::PageHeader header;
  header.lane = page.lane;
  header.codec = codec;
  header.record_count = page.record_count;
  std::vector<uint8_t> scratch(page.records.size());
  return collect::wire::decode_page(header, sent, scratch, page.records) == PageCodecError::kNone;
}

void check(const Page& page, Codec codec, Bytes sent) {
  if (sent.empty()) return;
  if (sent.size() >= page.records.size()) std::abort();
  Page again{page.lane, page.record_count, std::vector<uint8_t>(page.records.size())};
  if (!decode(again, codec, sent) || again.records != page.records) std::abort();
}

void encode_again(const Page& page) {
  static collect::wire::ColumnEncoder columns;
  static collect::wire::TupleEncoder tuples;
  std::vector<uint8_t> sent(page.records.size());
  check(page, Codec::kColumns,
        Bytes(sent).first(columns.encode(page.lane, page.record_count, page.records, sent)));
  if (page.lane != Lane::kIndex) return;
  check(page, Codec::kTuples,
        Bytes(sent).first(tuples.encode(page.record_count, page.records, sent)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  collect::ByteReader reader(Bytes(data, size));
  const uint8_t flags = reader.u8();
  const uint32_t raw_bytes = reader.u32() % kLargest;
  const uint32_t record_count = reader.u32() % (raw_bytes / 16 + 1);
  if (!reader.ok()) return 0;
  const Bytes rest(data + reader.offset(), reader.remaining());
  const Lane lane = (flags & 1) == 0 ? Lane::kIndex : Lane::kDetail;
  Page page{lane, record_count, std::vector<uint8_t>(raw_bytes)};
  if (decode(page, collect::wire::any_codec(flags >> 1), rest)) encode_again(page);
  // The same bytes as records.
  const uint32_t whole = static_cast<uint32_t>(rest.size() / 32);
  encode_again({Lane::kIndex, whole, {rest.begin(), rest.begin() + whole * 32}});
  encode_again({Lane::kDetail, record_count, {rest.begin(), rest.end()}});
  return 0;
}
