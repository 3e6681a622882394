// Reads sessions from beginning to end, and gives what they are as rows (capture_rows.h). Streams:
// memory grows with functions and open calls.
#pragma once

#include <cstdint>

#include "formats/calls/thread_calls.h"
#include "storage/convert/convert_log.h"
#include "storage/export/capture_rows.h"

namespace collect::exports {

// kWithoutEvents: of whole sessions. kEventsOnly: begin(), event() and nothing else.
enum class WalkedRows : uint8_t { kAll, kWithoutEvents, kEventsOnly };

struct WalkCounts {
  uint64_t functions = 0;
  uint64_t calls = 0;
  uint64_t events = 0;
  uint64_t lost_events = 0;
  uint64_t detail_records = 0;
  calls::ThreadCounts paired{};
};

class CaptureWalk {
 public:
  CaptureWalk(CaptureRows& rows, WalkedRows what, const convert::ConvertLog& log)
      : rows_(rows), what_(what), log_(log) {}

  Status run(ExportedSessions& sessions);
  const WalkCounts& counts() const { return counts_; }

 private:
  Status add(const CaptureSession& session);
  Status add_thread(const CaptureSession& session, const atf::SessionThread& thread,
                    calls::FunctionSlots& slots, calls::FunctionTotals& totals);
  Status add_functions(const CaptureSession& session, const calls::FunctionSlots& slots,
                       const calls::FunctionTotals& totals);

  CaptureRows& rows_;
  const WalkedRows what_;
  const convert::ConvertLog& log_;
  WalkCounts counts_;
  uint64_t done_ = 0;
  uint64_t all_ = 0;
};

}  // namespace collect::exports
