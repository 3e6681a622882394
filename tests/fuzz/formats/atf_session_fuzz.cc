// Any bytes as the files of several threads: merged, sought, links followed both ways, graded.
#include <cstdint>

#include "formats/atf/check.h"
#include "formats/atf/session_reader.h"
#include "formats/core/result.h"
#include "tests/fuzz/formats/atf_session_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace collect;
  const auto files = atf::fuzz::threads_of(Bytes(data, size));
  const atf::SessionReader session(files);
  uint64_t events = 0;
  uint64_t previous = 0;
  uint64_t middle = 0;
  atf::MergedCursor cursor = session.merged();
  for (atf::MergedEvent event; cursor.next(event); ++events) {
    COLLECT_CHECK(previous <= event.event.timestamp_ns);
    previous = event.event.timestamp_ns;
    if (events == session.events() / 2) middle = previous;
    if (const auto record = session.detail_of(event.thread, event.event)) {
      (void)session.event_of(event.thread, *record);
    }
  }
  COLLECT_CHECK(events == session.events());
  COLLECT_CHECK(session.time_range().has_value() == (events != 0));
  atf::MergedCursor later = session.merged(middle);
  uint64_t rest = 0;
  for (atf::MergedEvent event; later.next(event); ++rest) {
    COLLECT_CHECK(event.event.timestamp_ns >= middle);
  }
  COLLECT_CHECK(rest <= events && (events == 0 || rest > 0));
  std::vector<atf::ThreadReport> reports;
  for (const atf::ThreadFiles& file : files) {
    reports.push_back(atf::check_thread(file.n, file.index, file.detail));
  }
  const bool readable = atf::grade_of(reports) != atf::Grade::kRejected;
  bool any = false;
  for (const atf::SessionThread& thread : session.threads()) any = any || thread.index.has_value();
  COLLECT_CHECK(readable == any);
  return 0;
}
