#include "storage/export/export.h"

#include <fmt/core.h>

#include <algorithm>
#include <thread>

#include "formats/core/text/figures.h"
#include "storage/convert/session_kinds.h"
#include "storage/export/compressed_runs.h"
#include "storage/export/page/page_export.h"
#include "storage/export/parquet/parquet_export.h"
#include "storage/export/thread_time_line.h"
#include "storage/export/viewers/call_tree_export.h"
#include "storage/export/viewers/chrome_target.h"
#include "storage/export/viewers/perfetto_target.h"
#include "storage/export/viewers/speedscope_target.h"
#include "storage/fs/output_file.h"
#include "storage/read/lod_files.h"

namespace collect::exports {
namespace {

// ---- time lines

class TimeLineExport {
 public:
  TimeLineExport(ExportedSessions& sessions, TimeLineTarget& target, convert::ConvertLog& log)
      : sessions_(sessions), target_(target), log_(log) {
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
    if (counts_.are_too_many()) {
      log_.remark(with_thousands(counts_.calls) +
                  " calls are more than viewers open at once; --from and --until take a part of "
                  "the time, --thread a part of the threads");
    }
    return finished;
  }

 private:
  Status add(ExportedSession& session) {
    const calls::Window window = session.window();
    const auto range = session.time_range(window);
    calls::FunctionSlots slots;
    const FunctionNames names(session.names, slots);
    target_.begin_process({session.about.identity.pid, session.name_of_process(),
                           sessions_.size() == 1 ? "" : session.device(),
                           session.line_ns(range ? range->first_ns : window.first_ns)},
                          names);
    if (!range) return target_.status();
    EventRate rate(range->first_ns, range->last_ns);
    add_marks(session, *range);
    for (const atf::SessionThread& thread : session.reader.threads()) {
      log_.progress(done_++, all_);
      if (!thread.index) continue;
      const ExportedThread who{thread.n, thread.index->header().thread_id,
                               session.name_of_thread(thread.n)};
      ThreadTimeLine line(session, thread, who, names, window, target_, rate, counts_);
      calls::ThreadCalls<ThreadTimeLine> calls(slots, line, line.stalls(), window);
      read::read_calls(session.trace.thread(thread.n), *thread.index, line.gaps(), line.stalls(),
                       window, calls);
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
      if (marker.at_ns < range.first_ns || marker.at_ns > range.last_ns) continue;
      target_.marker(session.line_ns(marker.at_ns), marker.text);
    }
    add_ends(session, range);
    for (const storage::Stall& stall : session.about.stalls) {
      const uint64_t first_ns = std::max(stall.first_ns, range.first_ns);
      const uint64_t last_ns = std::min(stall.last_ns, range.last_ns);
      if (stall.thread || first_ns >= last_ns) continue;
      target_.stall(nullptr, stall, session.line_ns(first_ns), session.line_ns(last_ns));
    }
  }

  void add_ends(const ExportedSession& session, const atf::TimeRange& range) {
    for (const storage::ManifestThread& thread : session.about.threads) {
      const bool is_in = thread.end_ns >= range.first_ns && thread.end_ns <= range.last_ns;
      if (!thread.ended || !is_in || !session.has_thread(thread.id)) continue;
      target_.ended(session.line_ns(thread.end_ns),
                    fmt::format("end of {} ({})", thread.name.empty() ? "thread" : thread.name,
                                thread.thread_id));
    }
    const storage::ProcessEnd& end = session.about.process_end;
    if (end.how == storage::ProcessEnd::How::kNotKnown) return;
    std::string what = "end of the process: ";
    what += storage::process_end_name(end.how);
    if (end.how == storage::ProcessEnd::How::kExited) {
      what += fmt::format(" with {}", end.exit_code);
    }
    if (end.how == storage::ProcessEnd::How::kSignaled) {
      what += fmt::format(" by signal {}{}", end.signal, end.core_dumped ? ", core dumped" : "");
    }
    target_.ended(session.line_ns(range.last_ns),
                  what);  // no one says when: not before the last event
  }

  ExportedSessions& sessions_;
  TimeLineTarget& target_;
  convert::ConvertLog& log_;
  ExportCounts counts_;
  uint64_t done_ = 0;
  uint64_t all_ = 0;
};

// The earliest time of all sessions, on the file's clock: what readers that keep doubles count
// from.
uint64_t origin_of(const ExportedSessions& sessions) {
  uint64_t origin_ns = UINT64_MAX;
  for (const auto& session : sessions) {
    const auto range = session->time_range(session->window());
    if (range) origin_ns = std::min(origin_ns, session->line_ns(range->first_ns));
  }
  return origin_ns == UINT64_MAX ? 0 : origin_ns;
}

Status export_time_line(ExportedSessions& sessions, TimeLineTarget& target,
                        convert::ConvertLog& log) {
  return TimeLineExport(sessions, target, log).run();
}

Status export_perfetto(ExportedSessions& sessions, ByteSink& out, convert::ConvertLog& log) {
  // One core makes packets, the others compress them.
  CompressedRuns runs(
      out, std::thread::hardware_concurrency() > 1 ? std::thread::hardware_concurrency() - 1 : 0);
  PerfettoTarget target(runs);
  const Status made = export_time_line(sessions, target, log);
  const Status compressed = runs.finish();
  return made.ok() ? compressed : made;
}

// Those of which a thread is wanted; a word may mean threads of some of them alone.
Result<ExportedSessions> open_sessions(const std::vector<const read::Trace*>& traces,
                                       const ExportSelection& selection) {
  ExportedSessions sessions;
  std::vector<Status> found(selection.threads.size());  // by word
  std::vector<bool> is_found(selection.threads.size());
  for (const read::Trace* trace : traces) {
    ExportSelection own = selection;
    own.threads.clear();
    for (size_t i = 0; i < selection.threads.size(); ++i) {
      const Status here = ExportedSession::find_threads(*trace, selection.threads[i]);
      if (here.ok()) {
        own.threads.push_back(selection.threads[i]);
        is_found[i] = true;
      } else if (here.code() != Code::kNotFound) {
        return here.error();
      } else if (found[i].ok()) {
        found[i] = here;
      }
    }
    if (own.threads.empty() && !selection.threads.empty()) continue;
    auto session = ExportedSession::open(*trace, own);
    if (!session.ok()) return session.error();
    sessions.push_back(std::move(*session));
  }
  for (size_t i = 0; i < found.size(); ++i) {
    if (!is_found[i]) return found[i].error();
  }
  return sessions;
}

// Whether a word means nothing in any of the sessions; each knows its own functions.
Status check_functions(ExportedSessions& sessions, const ExportSelection& selection) {
  Status found;
  const select::FunctionFilter* before = nullptr;
  for (const auto& session : sessions) {
    if (before != nullptr) session->functions.take_found(*before);
    found = session->functions.check_all_found(
        selection.is_part() ? "function of the selected events" : "function",
        session->manifest.symbols);
    before = &session->functions;
  }
  return found;
}

// What a session may have and the formats of viewers have no place for. Some count a kind
// themselves, as far as they had it in hand: it is not among these.
uint32_t kinds_lacking(Target format) {
  using enum convert::SessionKind;
  uint32_t lacking = kDetailLossesKind | kClocksKind | kLockWaitsKind | kSamplesKind;
  if (format == Target::kFolded || format == Target::kParquet) {
    lacking |= kSwitchesKind;
  }
  if (format != Target::kPerfetto && format != Target::kChrome) {
    lacking |= kThreadEndsKind | kProcessEndKind;
    if (format != Target::kHtml) lacking |= kMarkersKind;
  }
  if (format == Target::kChrome || format == Target::kFolded) lacking |= kSourceLinesKind;
  if (format == Target::kFolded || format == Target::kPprof || format == Target::kHtml) {
    lacking |= kDetailRecordsKind;
  }
  if (format == Target::kParquet) lacking |= kStallsKind;
  return lacking;
}

void leave_out_kinds(const ExportedSessions& sessions, Target format, convert::ConvertLog& log) {
  uint32_t lacking = kinds_lacking(format);
  if (sessions.size() > 1) lacking &= ~uint32_t{convert::kClocksKind};  // their time line has them
  for (const auto& session : sessions) {
    const calls::Window& window = session->window();
    convert::leave_out_kinds(session->about, lacking,
                             {window.first_ns, window.last_ns,
                              [&](uint32_t thread) { return session->has_thread(thread); }},
                             log);
  }
}

Status check_switches(const ExportedSessions& sessions) {
  for (const auto& session : sessions) {
    const storage::SessionIdentity& identity = session->manifest.identity;
    if (identity.switches) continue;
    return Error{
        Code::kInvalidArgument,
        fmt::format("{}: when threads were on a processor is not known{}{}", session->trace.path,
                    identity.no_switches.empty() ? "" : ": ", identity.no_switches)};
  }
  return {};
}

}  // namespace

Status export_view(ExportedSessions& sessions, Target format, ByteSink& out,
                   convert::ConvertLog& log, TimeValue value) {
  switch (format) {
    case Target::kPerfetto:
      return export_perfetto(sessions, out, log);
    case Target::kChrome: {
      ChromeTarget target(out, origin_of(sessions));
      return export_time_line(sessions, target, log);
    }
    case Target::kSpeedscope: {
      SpeedscopeTarget target(out, origin_of(sessions));
      return export_time_line(sessions, target, log);
    }
    case Target::kFolded:
      return export_folded(sessions, value, out, log);
    case Target::kPprof:
      return export_pprof(sessions, out, log);
    case Target::kHtml:
      return export_page(sessions, {}, out, log);
    default:
      break;
  }
  return Error{Code::kInvalidArgument, std::string(name_of(format)) + " is no format of viewers"};
}

Status export_sessions(const std::vector<const read::Trace*>& traces,
                       const ExportSelection& selection, Target format, const std::string& output,
                       convert::ConvertLog& log) {
  auto opened = open_sessions(traces, selection);
  if (!opened.ok()) return opened.error();
  ExportedSessions& sessions = *opened;
  if (selection.value != TimeValue::kWall) COLLECT_TRY(check_switches(sessions));
  if (traces.size() > 1) {
    COLLECT_TRY(ExportedSession::place(sessions));
    for (const auto& session : sessions) {
      log.remark(fmt::format("{}: {}", session->trace.path, session->clock->sentence()));
    }
  }
  COLLECT_TRY(ExportedSession::choose_windows(sessions, selection.when));
  if (format == Target::kParquet) {
    COLLECT_TRY(export_parquet(
        sessions, ParquetTables::kAll, output, [&] { return check_functions(sessions, selection); },
        log));
    leave_out_kinds(sessions, format, log);
    return {};
  }
  auto out = storage::OutputFile::create(output, true);
  if (!out.ok()) return out.error();
  COLLECT_TRY(export_view(sessions, format, *out, log, selection.value));
  leave_out_kinds(sessions, format, log);
  COLLECT_TRY(check_functions(sessions, selection));
  COLLECT_TRY(out->commit());
  log.wrote(output, out->size());
  return {};
}

}  // namespace collect::exports
