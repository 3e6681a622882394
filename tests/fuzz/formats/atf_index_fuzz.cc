// Any bytes as an index file: opened, iterated, looked up, put in time order, checked. What must
// hold of every input is checked and ends the run.
#include <cstdint>

#include "formats/atf/check.h"
#include "formats/atf/reader.h"
#include "formats/atf/time_order.h"
#include "formats/core/result.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace collect;
  const Bytes file(data, size);
  atf::Findings findings;
  const auto reader = atf::IndexReader::open(file, findings);
  const atf::ThreadReport report = atf::check_thread(0, file, {});
  COLLECT_CHECK(report.rejected == !reader.has_value());
  if (!reader) {
    COLLECT_CHECK(findings.errors() == 1);
    return 0;
  }
  COLLECT_CHECK(reader->size() <= size / atf::kEventBytes);
  uint64_t visited = 0;
  reader->events().for_each([&](uint64_t seq, const atf::IndexEvent& event) {
    COLLECT_CHECK(seq == visited++);
    COLLECT_CHECK(reader->get(seq)->timestamp_ns == event.timestamp_ns);
  });
  COLLECT_CHECK(visited == reader->size());
  COLLECT_CHECK(!reader->get(visited));
  const atf::TimeOrder order = atf::TimeOrder::of(*reader);
  COLLECT_CHECK(order.backward_steps() == report.backward_steps);
  for (size_t run = 0; run < order.runs(); ++run) {
    COLLECT_CHECK(order.run_begin(run) < order.run_end(run));
    COLLECT_CHECK(order.seek(*reader, run, 0) == order.run_begin(run));
  }
  (void)reader->checksum();
  return 0;
}
