// A session that is exported to a format of viewers: what its manifest says, which of its threads,
// functions and times are wanted, and its place on the time line.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/atf/session_reader.h"
#include "formats/calls/running_time.h"
#include "formats/calls/thread_calls.h"
#include "storage/manifest/manifest.h"
#include "storage/read/session_files.h"
#include "storage/read/session_manifest.h"
#include "storage/select/function_filter.h"
#include "storage/select/time_window.h"

namespace collect::exports {

// Which time of a call counts. The last two: where it is known when threads were on a processor.
enum class TimeValue : uint8_t { kWall, kCpu, kWait };

// What of the sessions is wanted; as DumpOptions has it.
struct ExportSelection {
  // Numbers are of the device clock; of several sessions: since the epoch.
  select::WindowWords when;
  std::vector<std::string> threads;    // storage/model/thread_pattern.h; empty: all
  std::vector<std::string> functions;  // formats/core/text/function_pattern.h; empty: all
  TimeValue value = TimeValue::kWall;  // of folded stacks

  // Whether events are left out; functions do not count.
  bool is_part() const { return !when.is_everything() || !threads.empty(); }
};

class ExportedSession {
 public:
  // kNotFound: the word means no thread of this session; kInvalidArgument: it names none.
  static Status find_threads(const read::Trace& opened, const std::string& word);
  // kInvalidArgument, kNotFound: a word of `selection` means nothing here. `opened` outlives it.
  static Result<std::unique_ptr<ExportedSession>> open(const read::Trace& opened,
                                                       const ExportSelection& selection);
  ExportedSession(const ExportedSession&) = delete;
  ExportedSession& operator=(const ExportedSession&) = delete;

  // Lays all of them on one time line. kInvalidArgument: the clock of one is not known.
  static Status place(const std::vector<std::unique_ptr<ExportedSession>>& sessions);

  // From the device's clock to the one of the file.
  uint64_t line_ns(uint64_t device_ns) const {
    return clock ? clock->line_ns(device_ns) : device_ns;
  }
  // What of each session is wanted, once all are placed. As window_of().
  static Status choose_windows(const std::vector<std::unique_ptr<ExportedSession>>& sessions,
                               const select::WindowWords& words);
  void choose_window(const calls::Window& window) { window_ = window; }
  const calls::Window& window() const { return window_; }  // on the device's clock
  // From the first event or marker within the window to the last, on the device's clock. Nothing
  // where there is none.
  std::optional<atf::TimeRange> time_range(const calls::Window& window) const;

  std::string name_of_process() const;
  std::string device() const;                    // model or id; empty: no one knows
  std::string name_of_thread(uint32_t n) const;  // empty: it has none
  bool has_thread(uint32_t n) const;             // it is one of the chosen ones
  std::vector<calls::Gap> gaps_of(uint32_t n, std::vector<uint32_t>& reasons) const;
  // Those of the process, and those of the thread.
  std::vector<calls::Stall> stalls_of(uint32_t n) const;
  // The pages of a thread's files that were read leave this process.
  void drop_pages(uint32_t n) const;

  const read::Trace& trace;
  const read::SessionManifest manifest;  // lenient: names
  const storage::Manifest about;         // gaps, stalls, markers; empty where it cannot be read
  const read::NameTable names;
  const atf::SessionReader reader;  // of the chosen threads
  select::FunctionFilter functions;
  std::optional<select::DeviceClock> clock;  // of several sessions

 private:
  ExportedSession(const read::Trace& opened, read::SessionManifest said, storage::Manifest whole,
                  const std::vector<uint32_t>& only)
      : trace(opened),
        manifest(std::move(said)),
        about(std::move(whole)),
        names(manifest),
        reader(trace.files(only)) {}

  calls::Window window_;
};

using ExportedSessions = std::vector<std::unique_ptr<ExportedSession>>;

}  // namespace collect::exports
