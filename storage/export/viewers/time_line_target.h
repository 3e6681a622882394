// A format with a time line, as the exporter fills it: process by process, thread by thread. Each
// format has one; what it does with a call is in its room's FORMAT.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "formats/core/event_note.h"
#include "formats/core/result.h"
#include "storage/convert/convert_log.h"
#include "storage/export/function_names.h"
#include "storage/manifest/manifest.h"
#include "storage/model/session_types.h"

namespace collect::exports {

struct ExportedProcess {
  uint32_t pid = 0;
  std::string name;
  std::string device;  // empty: one session alone, or no one knows
  uint64_t start_ns = 0;
};
struct ExportedThread {
  uint32_t n = 0;
  uint32_t tid = 0;
  std::string name;  // empty: it has none
};

// "stall: stopped"; "blocked" and "preempted" are the program's own.
inline std::string idle_time_name(storage::StallKind kind) {
  const std::string name(storage::stall_kind_name(kind));
  return storage::is_off_processor(kind) ? name : "stall: " + name;
}

// Times are those of the file's clock. Those of the calls of a thread ascend.
class TimeLineTarget {
 public:
  TimeLineTarget() = default;
  TimeLineTarget(const TimeLineTarget&) = delete;
  TimeLineTarget& operator=(const TimeLineTarget&) = delete;
  virtual ~TimeLineTarget() = default;

  // What comes then belongs to it. Functions are numbered again; `names` outlives it.
  virtual void begin_process(const ExportedProcess& process, const FunctionNames& names) = 0;
  virtual void marker(uint64_t ns, std::string_view text) = 0;
  // The end of a thread or of the process, in words. It comes among the markers.
  virtual void ended(uint64_t /*ns*/, std::string_view /*what*/) {}
  virtual void events_per_second(uint64_t ns, uint64_t count) = 0;

  // Before its first call, loss or stall.
  virtual void begin_thread(const ExportedThread& thread, uint64_t first_ns) = 0;
  virtual void begin_call(uint64_t ns, uint32_t function, const EventNotes* notes) = 0;
  // The newest one that is open.
  virtual void end_call(uint64_t ns, uint32_t function, const EventNotes* notes) = 0;
  // Events are missing: all calls have been ended, those known to be open afterwards begin again.
  virtual void lose(uint64_t first_ns, uint64_t last_ns, uint64_t events,
                    std::string_view reasons) = 0;
  // A stall or a time off the processor of the thread, or a stall of the process where `thread` is
  // null. Each once; it may be between calls.
  virtual void stall(const ExportedThread* thread, const storage::Stall& stall, uint64_t first_ns,
                     uint64_t last_ns) = 0;
  // Any such time of this thread, cut where its next event is: for formats that show it within
  // calls.
  virtual void stall_within(const storage::Stall&, uint64_t /*first_ns*/, uint64_t /*last_ns*/) {}
  // What is open stays open.
  virtual void end_thread(uint64_t last_ns) = 0;

  // The end of the file. What the format had no place for goes into `log`.
  virtual Status finish(convert::ConvertLog& log) = 0;
  // An error of the output, from which on nothing is of use.
  virtual const Status& status() const = 0;
};

}  // namespace collect::exports
