#include "proto/conformance/collectors/sent_records.h"

namespace collect::conformance {
namespace {

void put(Octets& out, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) out.push_back(static_cast<uint8_t>(value >> (8 * i)));
}

}  // namespace

uint64_t record_ns(uint64_t number) {
  return 1'000'000 + 1'000 * number;
}

Octets index_records(uint64_t first_seq, uint32_t count) {
  Octets records;
  records.reserve(size_t{count} * kRecordBytes);
  for (uint64_t number = first_seq; number < first_seq + count; ++number) {
    put(records, record_ns(number), 8);
    put(records, uint64_t{kSentModule} << 32 | 0x40, 8);
    put(records, ~uint64_t{0}, 8);  // no detail
    put(records, 1 + number % 2, 8);
  }
  return records;
}

PageHeader page_header(uint32_t stream, uint64_t first_seq, uint32_t count) {
  PageHeader page;
  page.stream_id = stream;
  page.first_seq = first_seq;
  page.record_count = count;
  page.raw_bytes = count * kRecordBytes;
  page.first_ns = count == 0 ? 0 : record_ns(first_seq);
  page.last_ns = count == 0 ? 0 : record_ns(first_seq + count - 1);
  return page;
}

Octets page_of(uint32_t stream, uint64_t first_seq, uint32_t count) {
  return page_frame_bytes(page_header(stream, first_seq, count), index_records(first_seq, count));
}

}  // namespace collect::conformance
