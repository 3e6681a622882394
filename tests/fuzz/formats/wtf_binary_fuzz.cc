// Any bytes as a WTF-trace: read event by event, checked, put into JSON and back, copied. What must
// hold of every input is checked and ends the run.
#include <cstdint>
#include <vector>

#include "formats/wtf/check.h"
#include "formats/wtf/json/json.h"
#include "formats/wtf/transcode.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace collect;
  const Bytes file(data, size);
  const wtf::FileReport report = wtf::check_file(file);
  COLLECT_CHECK((report.grade == wtf::Grade::kOk) == (report.findings.errors() == 0));
  if (report.kind == wtf::FileKind::kJson) return 0;

  wtf::Findings findings;
  auto reader = wtf::Reader::open(file, findings);
  COLLECT_CHECK(reader.ok() == (report.grade != wtf::Grade::kRejected));
  if (!reader) return 0;
  uint64_t events = 0;
  for (wtf::Event event; (*reader)->next(event); ++events) {
    COLLECT_CHECK(event.zone < (*reader)->zones().size());
    COLLECT_CHECK(event.offset < size);
    wtf::Value value;
    for (wtf::Arguments walk = event.arguments(); walk.next(value);) {
      if (value.argument->array && value.present()) {
        COLLECT_CHECK(value.elements.size() ==
                      value.count * wtf::element_bytes(value.argument->type));
        if (value.count != 0) (void)value.element(value.count - 1);
      }
      (void)value.utf8();
    }
  }
  COLLECT_CHECK(events == report.events);

  // A writer may refuse what no file can hold, as more zones than there are ids; it never breaks.
  auto again = wtf::Reader::open(file, findings);
  VectorSink copy;
  wtf::Writer writer(copy, wtf::kFaithfulCopy);
  if (transcode(**again, writer, findings).ok()) {
    const wtf::FileReport copied = wtf::check_file(copy.bytes());
    COLLECT_CHECK(copied.events == events);
    COLLECT_CHECK(copied.grade == wtf::Grade::kOk);
  }
  if (report.kind != wtf::FileKind::kBinary) return 0;
  for (const wtf::JsonEvents form : {wtf::JsonEvents::kEvents, wtf::JsonEvents::kBase64}) {
    VectorSink text, binary;
    wtf::Findings found;
    COLLECT_CHECK(wtf::binary_to_json(file, {wtf::JsonMode::kPartial, form}, text, found).ok());
    const bool whole = found.list().empty();
    COLLECT_CHECK(wtf::json_to_binary(text.bytes(), binary, found).ok());
    if (whole) {
      COLLECT_CHECK(binary.bytes() == std::vector<uint8_t>(data, data + size));
    }
  }
  return 0;
}
