#include "daemon/ctl/report/report_profile.h"

#include <fmt/core.h>

#include <algorithm>
#include <ostream>
#include <tuple>

#include "daemon/ctl/captures/capture_format.h"
#include "daemon/ctl/check/trace_check.h"
#include "daemon/ctl/terminal/text_out.h"
#include "formats/calls/caller_totals.h"
#include "formats/calls/function_totals.h"
#include "formats/calls/module_totals.h"
#include "storage/manifest/manifest.h"
#include "storage/read/capture_kind.h"
#include "storage/select/thread_choice.h"
#include "storage/select/time_window.h"

namespace collect::ctl {
namespace {

// Adds up one thread after another.
struct RecordedTime : calls::CallSink {
  void on_call_begin(const calls::Call&) { ++calls; }
  void on_call_end(const calls::EndedCall& call) {
    self_ns += call.self_ns;
    waited_ns += waits.end(call.depth).self_ns;
  }
  void on_wait(uint64_t ns, size_t depth) { waits.wait(ns, depth); }
  uint64_t calls = 0;
  uint64_t self_ns = 0;
  uint64_t waited_ns = 0;  // of these
  calls::WaitStack waits;
};

constexpr auto kNothingMore = [](auto&, size_t, const calls::ThreadCounts&) {};

template <class Sink>
void add_counts(ReportProfile& profile,
                const std::vector<std::unique_ptr<ReportWorker<Sink>>>& workers) {
  for (const auto& worker : workers) profile.counts.add(worker->counts);
}

ReportRow function_row(const read::NameTable& names, uint64_t id,
                       const calls::FunctionTimes& times) {
  ReportRow row;
  row.id = id;
  row.name = report_name(names, id);
  if (const read::SourceLocation* source = names.source_of(id)) row.source = *source;
  row.times = {times.calls, times.total_ns, times.self_ns, times.waited};
  row.exceptions = times.exceptions;
  row.open = times.open_at_end;
  row.skipped = times.skipped;
  row.cut_by_gap = times.cut_by_gap;
  row.cut_by_window = times.cut_by_window;
  if (const auto median = times.percentile(500); median) {
    row.durations = ReportPercentiles{*median, *times.percentile(950), *times.percentile(990),
                                      times.shortest_ns, times.longest_ns};
  }
  return row;
}

ReportProfile by_function(const ReportedCapture& capture,
                          const std::function<void(size_t, size_t)>& progress) {
  ReportProfile profile;
  const auto workers = read_capture<calls::FunctionTotals>(capture, progress, kNothingMore);
  auto& first = *workers.front();
  for (size_t i = 1; i < workers.size(); ++i) {
    first.sink.add(first.slots, workers[i]->sink, workers[i]->slots);
  }
  // Functions with nothing but returns and unknown events have a row too, but not in a window.
  for (uint32_t slot = 0; slot < first.slots.size(); ++slot) {
    const bool is_counted = slot < first.sink.times().size() && first.sink.times()[slot].is_seen();
    if (!is_counted && !capture.window().is_everything()) continue;
    profile.rows.push_back(function_row(
        capture.names(), first.slots.function_of(slot),
        slot < first.sink.times().size() ? first.sink.times()[slot] : calls::FunctionTimes()));
  }
  add_counts(profile, workers);
  return profile;
}

ReportProfile by_caller(const ReportedCapture& capture,
                        const std::function<void(size_t, size_t)>& progress) {
  using calls::CallerTotals;
  ReportProfile profile;
  const auto workers = read_capture<CallerTotals>(capture, progress, kNothingMore);
  auto& first = *workers.front();
  for (size_t i = 1; i < workers.size(); ++i) {
    first.sink.add(first.slots, workers[i]->sink, workers[i]->slots);
  }
  const auto id_of = [&](uint32_t slot) {
    return slot >= CallerTotals::kOther ? calls::FunctionSlots::kOther
                                        : first.slots.function_of(slot);
  };
  for (const CallerTotals::Pair& pair : first.sink.pairs()) {
    ReportRow row;
    row.id = id_of(pair.callee);
    row.caller_id = id_of(pair.caller);
    row.name = report_name(capture.names(), row.id);
    row.caller = pair.caller == CallerTotals::kNoCaller ? kNoCallerName
                 : pair.caller == CallerTotals::kCallerInDoubt
                     ? kCallerInDoubtName
                     : report_name(capture.names(), row.caller_id);
    row.times = pair.times;
    profile.rows.push_back(std::move(row));
  }
  add_counts(profile, workers);
  return profile;
}

ReportProfile by_module(const ReportedCapture& capture,
                        const std::function<void(size_t, size_t)>& progress) {
  ReportProfile profile;
  const auto workers = read_capture<calls::ModuleTotals>(capture, progress, kNothingMore);
  auto& first = *workers.front();
  for (size_t i = 1; i < workers.size(); ++i) first.sink.add(workers[i]->sink);
  for (const calls::ModuleTotals::Module& module : first.sink.modules()) {
    ReportRow row;
    row.id = module.module_id;
    row.name = module.module_id == calls::ModuleTotals::kOther
                   ? "(all other modules)"
                   : capture.names().module_name_of(module.module_id);
    row.times = module.times;
    profile.rows.push_back(std::move(row));
  }
  add_counts(profile, workers);
  return profile;
}

// The total of a thread is the time from its first event to its last, its self time that of the
// calls that were recorded; stalls are in neither.
ReportProfile by_thread(const ReportedCapture& capture,
                        const std::function<void(size_t, size_t)>& progress) {
  ReportProfile profile;
  profile.rows.resize(capture.threads().size());
  const auto keep = [&](ReportWorker<RecordedTime>& worker, size_t i,
                        const calls::ThreadCounts& counts) {
    const atf::SessionThread& thread = *capture.threads()[i];
    ReportRow& row = profile.rows[i];
    row.id = thread.n;
    row.thread_id = report_thread_id(capture, thread);
    row.name = report_thread_name(capture, thread.n);
    row.times = {worker.sink.calls,
                 counts.running_ns,
                 worker.sink.self_ns,
                 {counts.waited_ns, worker.sink.waited_ns}};
    worker.sink = {};
  };
  add_counts(profile, read_capture<RecordedTime>(capture, progress, keep));
  return profile;
}

ReportProfile profile_by(const ReportedCapture& capture, ReportBy by,
                         const std::function<void(size_t, size_t)>& progress) {
  switch (by) {
    case ReportBy::kFunction:
      return by_function(capture, progress);
    case ReportBy::kThread:
      return by_thread(capture, progress);
    case ReportBy::kModule:
      return by_module(capture, progress);
    case ReportBy::kCaller:
      return by_caller(capture, progress);
  }
  return {};
}

}  // namespace

std::string report_name(const read::NameTable& names, uint64_t function_id) {
  if (function_id == calls::FunctionSlots::kOther) return "(all other functions)";
  std::string name;
  names.append_name(name, function_id);
  return name;
}

uint32_t report_thread_id(const ReportedCapture& capture, const atf::SessionThread& thread) {
  const read::ManifestThread* said = capture.manifest().thread(thread.n);
  return said != nullptr && said->says(storage::kThreadIdKey) ? said->thread_id
                                                              : thread.index->header().thread_id;
}

std::string report_thread_name(const ReportedCapture& capture, uint32_t n) {
  const read::ManifestThread* said = capture.manifest().thread(n);
  return said != nullptr && !said->name.empty() ? said->name : fmt::format("thread_{}", n);
}

uint64_t average_ns(const calls::GroupTimes& times) {
  return times.calls == 0 ? 0 : times.total_ns / times.calls;
}

ReportProfile profile_of(const ReportedCapture& capture, const ReportOptions& options,
                         std::ostream& err) {
  const auto progress = progress_line(err, options.progress);
  ReportProfile profile = profile_by(capture, options.by, progress);
  profile.threads = capture.threads().size();
  if (capture.has_switches() && !options.wall) {
    profile.cpu_ns = profile.counts.running_ns - profile.counts.waited_ns;
  }
  ReportSort sort = options.sort;
  if (sort == ReportSort::kAuto) sort = profile.cpu_ns ? ReportSort::kCpu : ReportSort::kTotal;
  sort_rows(profile.rows, sort);
  return profile;
}

void sort_rows(std::vector<ReportRow>& rows, ReportSort sort) {
  const auto by = [&](auto value) {
    // Ids break ties, so that two runs print the same.
    std::sort(rows.begin(), rows.end(), [&](const ReportRow& a, const ReportRow& b) {
      if (value(a) != value(b)) return value(a) > value(b);
      return std::tie(a.id, a.caller_id, a.caller) < std::tie(b.id, b.caller_id, b.caller);
    });
  };
  switch (sort) {
    case ReportSort::kAuto:
    case ReportSort::kTotal:
      by([](const ReportRow& row) { return row.times.total_ns; });
      break;
    case ReportSort::kSelf:
      by([](const ReportRow& row) { return row.times.self_ns; });
      break;
    case ReportSort::kCpu:
      by([](const ReportRow& row) { return cpu_self_ns(row.times); });
      break;
    case ReportSort::kCalls:
      by([](const ReportRow& row) { return row.times.calls; });
      break;
    case ReportSort::kAverage:
      by([](const ReportRow& row) { return average_ns(row.times); });
      break;
    case ReportSort::kP99:
      by([](const ReportRow& row) { return row.durations ? row.durations->p99_ns : 0; });
      break;
    case ReportSort::kLongest:
      by([](const ReportRow& row) { return row.durations ? row.durations->longest_ns : 0; });
      break;
    case ReportSort::kName:
      std::sort(rows.begin(), rows.end(), [](const ReportRow& a, const ReportRow& b) {
        return std::tie(a.name, a.caller, a.id, a.caller_id) <
               std::tie(b.name, b.caller, b.id, b.caller_id);
      });
      break;
  }
}

// ---- opening

int ReportedCapture::open(const std::string& path, const ReportOptions& options,
                          const Answer& answer) {
  std::ostream& err = answer.err;
  auto trace = read::open_trace(path);
  if (!trace) {
    return answer.refuse(trace.error(), 2);
  }
  trace_ = std::move(trace).value();
  if (!trace_->choice.empty()) err << "collectctl: " << printable_sentence(trace_->choice) << "\n";
  is_unreadable_ = say_unopened(*trace_, err);
  if (trace_->kind == read::TraceKind::kUnknownFile) {
    const CaptureFormat* format = capture_format_of(trace_->file());
    if (format == nullptr)
      return answer.refuse(read::not_a_capture(trace_->path, trace_->file()), 2);
    return answer.refuse_briefly(
        {Code::kUnsupported,
         fmt::format("{}: {}: report reads ATF; collectctl convert --to atf makes a session of it",
                     trace_->path, format->title)},
        2);
  }
  bool has_manifest = false;
  if (trace_->manifest) {
    auto parsed = read::SessionManifest::of(*trace_);
    if (parsed) {
      manifest_ = std::move(parsed).value();
      has_manifest = true;
    } else {
      err << "collectctl: "
          << printable_sentence(
                 fmt::format("{}: {}", trace_->manifest_path, parsed.error().message))
          << "; functions stay unnamed\n";
    }
  }
  health_ = read::session_health(*trace_, has_manifest ? &manifest_ : nullptr);
  const auto chosen = select::chosen_threads(options.threads, *trace_, manifest_);
  if (!chosen.ok()) {
    return answer.refuse_briefly(chosen.error(), chosen.code() == Code::kNotFound ? 1 : 2);
  }
  names_.emplace(manifest_);
  reader_.emplace(trace_->files(*chosen));
  lost_ = manifest_.lost_without_stream;
  for (const atf::SessionThread& thread : reader_->threads()) {
    if (!thread.index) {
      is_unreadable_ = true;
      err << "collectctl: thread " << thread.n << ": "
          << printable_sentence(thread.findings.list().front().sentence) << "; left out\n";
      continue;
    }
    threads_.push_back(&thread);
    const read::ManifestThread* said = manifest_.thread(thread.n);
    if (said != nullptr) lost_ += said->lost_events;
  }
  return choose_window(options, answer);
}

int ReportedCapture::choose_window(const ReportOptions& options, const Answer& answer) {
  const auto window = select::window_of(
      options.when, [this] { return select::session_times(*reader_, trace_->manifest); });
  if (!window.ok()) return answer.refuse_briefly(window.error(), 2);
  window_ = *window;
  return 0;
}

}  // namespace collect::ctl
