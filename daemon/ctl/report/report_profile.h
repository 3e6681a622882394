// What `report` works out of one capture: on all cores, a thread of the capture at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "daemon/ctl/report/report.h"
#include "daemon/ctl/terminal/json.h"
#include "formats/atf/session_reader.h"
#include "formats/calls/function_totals.h"
#include "formats/calls/group_times.h"
#include "formats/calls/read_thread.h"
#include "storage/read/lod_files.h"
#include "storage/read/session_files.h"
#include "storage/read/session_manifest.h"
#include "storage/read/thread_breaks.h"
#include "storage/read/workers.h"

namespace collect::ctl {

// An opened capture, and what was asked for of it. Stays where it is: its parts refer to each
// other.
class ReportedCapture {
 public:
  // 0, or the exit code when nothing can be reported; what is wrong is reported by `answer`.
  int open(const std::string& path, const ReportOptions& options, const Answer& answer);

  const read::Trace& trace() const { return *trace_; }
  const read::SessionManifest& manifest() const { return manifest_; }
  // Nothing where no one can say: single files, and other programs' sessions.
  const std::optional<storage::SessionHealth>& health() const { return health_; }
  const read::NameTable& names() const { return *names_; }
  const std::vector<const atf::SessionThread*>& threads() const { return threads_; }
  const atf::SessionReader& reader() const { return *reader_; }
  const calls::Window& window() const { return window_; }
  // What begins in the window: waits for locks, or samples.
  std::vector<storage::Stall> times_of(uint32_t thread, storage::StallKind kind) const {
    std::vector<storage::Stall> times = read::times_of(manifest_, thread, kind);
    std::erase_if(times, [this](const storage::Stall& one) {
      return one.first_ns < window_.first_ns || one.first_ns > window_.last_ns;
    });
    return times;
  }
  // Whether it is known when its threads were on a processor.
  bool has_switches() const { return manifest_.identity.switches; }
  // With a window, of the readable threads in it; else of the whole capture.
  uint64_t lost_events(const calls::ThreadCounts& counts) const {
    return window_.is_everything() ? lost_ : counts.lost_events;
  }
  bool has_unreadable_threads() const { return is_unreadable_; }

 private:
  int choose_window(const ReportOptions& options, const Answer& answer);

  std::optional<read::Trace> trace_;
  read::SessionManifest manifest_;
  std::optional<storage::SessionHealth> health_;
  std::optional<read::NameTable> names_;
  std::optional<atf::SessionReader> reader_;
  std::vector<const atf::SessionThread*> threads_;  // that can be read
  calls::Window window_;
  uint64_t lost_ = 0;
  bool is_unreadable_ = false;
};

// What one worker adds up.
template <class Sink>
struct ReportWorker {
  ReportWorker() : sink(make()) {}

  calls::FunctionSlots slots;
  Sink sink;
  calls::ThreadCounts counts;

 private:
  Sink make() {
    if constexpr (std::is_default_constructible_v<Sink>) {
      return Sink();
    } else {
      return Sink(slots);
    }
  }
};

// Every thread of the capture through a sink: done(worker, i) follows thread i. One worker for each
// core, whose results are still apart.
template <class Sink, class Done>
std::vector<std::unique_ptr<ReportWorker<Sink>>> read_capture(
    const ReportedCapture& capture, const std::function<void(size_t, size_t)>& progress,
    Done&& done) {
  const auto& threads = capture.threads();
  std::vector<std::unique_ptr<ReportWorker<Sink>>> workers(read::workers_for(threads.size()));
  for (auto& worker : workers) worker = std::make_unique<ReportWorker<Sink>>();
  read::share_work(threads.size(), progress, [&](size_t number, size_t i) {
    ReportWorker<Sink>& worker = *workers[number];
    const uint32_t n = threads[i]->n;
    const std::vector<calls::Gap> gaps = read::call_gaps_of(capture.manifest(), n);
    const std::vector<calls::Stall> stalls = read::call_stalls_of(capture.manifest(), n);
    if constexpr (std::is_same_v<Sink, calls::FunctionTotals>) {
      // The totals of a whole thread may have been added up already.
      const read::TraceThread* files = capture.trace().thread(n);
      const auto lod = files != nullptr && capture.window().is_everything()
                           ? read::find_lod(*files, *threads[i]->index, gaps, stalls)
                           : std::nullopt;
      if (lod) {
        worker.sink.add(worker.slots, lod->summary->totals, lod->summary->slots);
        worker.counts.add(lod->summary->counts);
        done(worker, i, lod->summary->counts);
        return;
      }
    }
    calls::ThreadCalls<Sink> thread(worker.slots, worker.sink, stalls, capture.window());
    read::read_calls(capture.trace().thread(n), *threads[i]->index, gaps, stalls, capture.window(),
                     thread);
    worker.counts.add(thread.counts());
    done(worker, i, thread.counts());
  });
  return workers;
}

struct ReportPercentiles {
  uint64_t p50_ns = 0, p95_ns = 0, p99_ns = 0;
  uint64_t shortest_ns = 0, longest_ns = 0;
};

struct ReportRow {
  std::string name;
  std::string caller;             // of kCaller
  read::SourceLocation source{};  // of kFunction
  uint64_t id = 0;                // of the function; the module's; N of thread_N
  uint64_t caller_id = 0;         // of kCaller
  uint32_t thread_id = 0;         // of kThread
  calls::GroupTimes times;
  uint64_t exceptions = 0;  // the rest is of kFunction
  uint64_t open = 0;
  uint64_t skipped = 0;
  uint64_t cut_by_gap = 0;
  uint64_t cut_by_window = 0;
  std::optional<ReportPercentiles> durations;  // absent: no whole call, or too many functions
};

struct ReportProfile {
  std::vector<ReportRow> rows;
  calls::ThreadCounts counts;
  uint64_t threads = 0;
  std::optional<uint64_t> cpu_ns;  // of all threads together, on a processor; nullopt: not known
};

inline constexpr char kNoCallerName[] = "(no caller)";
inline constexpr char kOtherPathsName[] = "(all other paths)";
inline constexpr char kCallerInDoubtName[] = "(unknown, behind a gap)";

std::string report_name(const read::NameTable& names, uint64_t function_id);
// The id of the thread in the system, as the manifest or else its file says it, and its name.
uint32_t report_thread_id(const ReportedCapture& capture, const atf::SessionThread& thread);
std::string report_thread_name(const ReportedCapture& capture, uint32_t n);
ReportProfile profile_of(const ReportedCapture& capture, const ReportOptions& options,
                         std::ostream& err);
// Per call on average; recursive calls are within the outermost one.
uint64_t average_ns(const calls::GroupTimes& times);
// Largest first, or by name; of equal ones in the order of names and ids.
void sort_rows(std::vector<ReportRow>& rows, ReportSort sort);

}  // namespace collect::ctl
