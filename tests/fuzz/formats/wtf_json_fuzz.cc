// Any bytes as the JSON form: put into binary, which then reads without a structural error, and
// survives the way to JSON and back.
#include <cstdint>

#include "formats/core/text/base64.h"
#include "formats/core/text/json_cursor.h"
#include "formats/wtf/binary/header.h"
#include "formats/wtf/check.h"
#include "formats/wtf/json/json.h"
#include "formats/wtf/text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace collect;
  const Bytes text(data, size);
  (void)is_json(wtf::text_of(text));
  (void)decode_base64(wtf::text_of(text));
  wtf::Findings findings;
  (void)wtf::parse_header(wtf::text_of(text), 0, findings);

  VectorSink binary;
  const auto converted = wtf::json_to_binary(text, binary, findings);
  if (!converted.ok()) {
    COLLECT_CHECK(findings.errors() != 0);
    return 0;
  }
  const wtf::FileReport report = wtf::check_file(binary.bytes());
  COLLECT_CHECK(report.kind == wtf::FileKind::kBinary);
  COLLECT_CHECK(report.grade != wtf::Grade::kRejected);
  COLLECT_CHECK(report.chunks == converted->chunks);
  for (const wtf::Rule rule : {wtf::Rule::kTrailing, wtf::Rule::kTruncated, wtf::Rule::kChunkHeader,
                               wtf::Rule::kPartRange, wtf::Rule::kPartLayout}) {
    COLLECT_CHECK(!report.findings.has(rule));
  }
  VectorSink again, back;
  wtf::Findings found;
  COLLECT_CHECK(wtf::binary_to_json(binary.bytes(), {}, again, found).ok());
  COLLECT_CHECK(wtf::json_to_binary(again.bytes(), back, found).ok());
  COLLECT_CHECK(back.bytes() == binary.bytes());
  return 0;
}
