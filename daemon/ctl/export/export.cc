#include "daemon/ctl/export/export.h"

#include <algorithm>
#include <thread>

#include "daemon/ctl/convert/output_file.h"
#include "daemon/ctl/export/call_tree_export.h"
#include "daemon/ctl/export/chrome_target.h"
#include "daemon/ctl/export/compressed_runs.h"
#include "daemon/ctl/export/perfetto_target.h"
#include "daemon/ctl/export/speedscope_target.h"
#include "daemon/ctl/export/thread_time_line.h"
#include "daemon/ctl/figures.h"
#include "formats/calls/read_thread.h"

namespace collect::ctl {
namespace {

// Beyond it the viewer of the format opens the file in minutes, or not at all.
constexpr uint64_t kManyCalls = 20'000'000;

using Sessions = std::vector<std::unique_ptr<ExportedSession>>;

// ---- time lines

class TimeLineExport {
 public:
  TimeLineExport(Sessions& sessions, const ExportSelection& selection, TimeLineTarget& target,
                 ConvertLog& log)
      : sessions_(sessions), selection_(selection), target_(target), log_(log) {
    for (const auto& session : sessions) all_ += session->reader.threads().size();
  }

  Status run() {
    for (const auto& session : sessions_) COLLECT_TRY(add(*session));
    const Status finished = target_.finish(log_);
    log_.count("calls", counts_.calls);
    if (counts_.lost_events != 0) log_.count("lost_events", counts_.lost_events);
    log_.leave_out("returns without a call", counts_.lone_ends);
    log_.leave_out("times that stepped back within a thread, moved to the event before",
                   counts_.moved_times);
    if (counts_.calls > kManyCalls) {
      log_.remark(with_thousands(counts_.calls) +
                  " calls are more than viewers open at once; --from and --until take a part of "
                  "the time, --thread a part of the threads");
    }
    return finished;
  }

 private:
  Status add(ExportedSession& session) {
    const calls::Window window = session.window(selection_);
    const auto range = session.time_range(window);
    calls::FunctionSlots slots;
    const FunctionNames names(session.names, slots);
    target_.begin_process(
        {session.about.identity.pid, session.name_of_process(),
         sessions_.size() == 1 ? "" : session.device(),
         session.line_ns(range ? range->first : std::max(window.first_ns, uint64_t{0}))},
        names);
    if (!range) return target_.status();
    EventRate rate(range->first, range->last);
    add_marks(session, *range);
    for (const atf::SessionThread& thread : session.reader.threads()) {
      log_.progress(done_++, all_);
      if (!thread.index) continue;
      const ExportedThread who{thread.n, thread.index->header().thread_id,
                               session.name_of_thread(thread.n)};
      ThreadTimeLine line(session, thread, who, names, window, target_, rate, counts_);
      calls::ThreadCalls<ThreadTimeLine> calls(slots, line, line.stalls(), window);
      calls::read_thread(*thread.index, line.gaps(), calls);
      line.finish();
      log_.count("events", calls.counts().events);
      log_.leave_out("calls nested deeper than can be followed", calls.counts().too_deep);
      log_.leave_out("events of an unknown kind", calls.counts().unknown_kinds);
      COLLECT_TRY(target_.status());
    }
    rate.for_each_change([&](uint64_t ns, uint64_t per_second) {
      target_.events_per_second(session.line_ns(ns), per_second);
    });
    return target_.status();
  }

  // What belongs to the process.
  void add_marks(const ExportedSession& session, const atf::TimeRange& range) {
    for (const storage::Marker& marker : session.about.markers) {
      if (marker.at_ns < range.first || marker.at_ns > range.last) continue;
      target_.marker(session.line_ns(marker.at_ns), marker.text);
    }
    for (const storage::Stall& stall : session.about.stalls) {
      if (!stall.thread) add_stall(session, nullptr, stall, range);
    }
  }

  void add_stall(const ExportedSession& session, const ExportedThread* thread,
                 const storage::Stall& stall, const atf::TimeRange& range) {
    const uint64_t first_ns = std::max(stall.first_ns, range.first);
    const uint64_t last_ns = std::min(stall.last_ns, range.last);
    if (first_ns >= last_ns) return;
    target_.stall(thread, stall, session.line_ns(first_ns), session.line_ns(last_ns));
  }

  Sessions& sessions_;
  const ExportSelection& selection_;
  TimeLineTarget& target_;
  ConvertLog& log_;
  ExportCounts counts_;
  uint64_t done_ = 0;
  uint64_t all_ = 0;
};

}  // namespace

}  // namespace collect::ctl
