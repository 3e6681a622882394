// Any bytes as a detail file: walked, looked up by number, payloads recognised.
#include <cstdint>

#include "formats/atf/check.h"
#include "formats/atf/payload.h"
#include "formats/atf/reader.h"
#include "formats/core/result.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace collect;
  const Bytes file(data, size);
  atf::Findings findings;
  const auto reader = atf::DetailReader::open(file, findings);
  const atf::ThreadReport report = atf::check_detail_alone(0, file);
  COLLECT_CHECK(report.rejected == !reader.has_value());
  if (!reader) return 0;
  COLLECT_CHECK(reader->size() == report.detail.records);
  COLLECT_CHECK(reader->size() <= size / atf::kDetailHeaderBytes);
  atf::DetailCursor cursor = reader->records();
  for (uint64_t seq = 0; seq < reader->size(); ++seq) {
    COLLECT_CHECK(reader->offset_of(seq) == cursor.offset());
    const auto walked = cursor.next();
    const auto found = reader->get(seq);
    COLLECT_CHECK(walked && found && walked->payload.data() == found->payload.data());
    if (const auto payload = atf::decode_function_payload(found->payload)) {
      COLLECT_CHECK(payload->stack.size() <= atf::kMaxStackBytes);
    }
  }
  COLLECT_CHECK(!cursor.next());
  COLLECT_CHECK(!reader->get(reader->size()));
  (void)reader->checksum();
  return 0;
}
