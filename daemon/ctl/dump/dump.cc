#include "daemon/ctl/dump/dump.h"

#include <fmt/core.h>

#include <algorithm>
#include <ostream>

#include "daemon/ctl/captures/capture_format.h"
#include "daemon/ctl/check/trace_check.h"
#include "daemon/ctl/dump/event_dump.h"
#include "daemon/ctl/terminal/json.h"
#include "daemon/ctl/terminal/terminal.h"
#include "daemon/ctl/terminal/text_out.h"
#include "storage/manifest/manifest.h"
#include "storage/read/capture_kind.h"
#include "storage/select/thread_choice.h"

namespace collect::ctl {
namespace {

// A detail file without its index beside it: its records are all there is.
int dump_detail_alone(const DumpOptions& options, const read::Trace& trace, const Answer& answer) {
  atf::Findings findings;
  const auto reader = atf::DetailReader::open(trace.threads[0].detail->bytes(), findings);
  if (!reader) {
    return answer.refuse_briefly(
        {Code::kDamaged, fmt::format("{}: {}", trace.path, findings.list().front().sentence)}, 1);
  }
  const auto window = select::window_of(options.when, [&] {
    select::SessionTimes times = select::session_times(atf::SessionReader({}), trace.manifest);
    if (const auto first = reader->records().next(); first) times.start_ns = first->timestamp_ns;
    return times;
  });
  if (!window.ok()) return answer.refuse_briefly(window.error(), 2);
  TextOut text(answer.out);
  atf::DetailCursor cursor = reader->records();
  const uint64_t bytes = trace.threads[0].detail->bytes().size();
  const bool is_long = bytes >= 2 * DoneSteps::kStep;
  const auto progress = percent_line(answer.err, options.progress && is_long, "printing");
  for (uint64_t printed = 0; printed < options.limit && text.ok();) {
    progress(cursor.offset(), bytes);
    const uint64_t seq = cursor.seq();
    const auto record = cursor.next();
    if (!record) break;
    if (record->timestamp_ns < window->first_ns || record->timestamp_ns > window->last_ns) continue;
    if (options.json) {
      print_detail_json(text, seq, *record);
    } else {
      print_detail_text(text, seq, *record);
    }
    ++printed;
  }
  progress(bytes, bytes);
  return 0;
}

// Threads that cannot be read.
bool complain(const atf::SessionReader& session, std::ostream& err) {
  bool unreadable = false;
  for (const atf::SessionThread& thread : session.threads()) {
    if (thread.index) continue;
    unreadable = true;
    err << "collectctl: thread " << thread.n << ": "
        << printable_sentence(thread.findings.list().front().sentence) << "; left out\n";
  }
  return unreadable;
}

// How the session's clock is known, and of whom it is.
std::string described(const storage::Manifest& manifest, const select::DeviceClock& clock) {
  const storage::SessionIdentity& process = manifest.identity;
  std::string text = process.process_name;
  const std::string& device =
      process.device_model.empty() ? process.device_id : process.device_model;
  if (!device.empty()) text += " on " + device;
  return fmt::format("{}; {}", text, clock.sentence());
}

// Lays all of them on one time line; the error says why one cannot be.
Status place(std::vector<std::unique_ptr<DumpedSession>>& sessions) {
  select::TimeLine line;
  for (const auto& session : sessions) {
    storage::Manifest manifest;
    if (session->trace.manifest) {
      auto whole = storage::manifest_from_json(*session->trace.manifest);
      if (whole.ok()) manifest = std::move(*whole);
    }
    auto clock = line.add(manifest);
    if (!clock.ok()) {
      return Error{clock.code(), fmt::format("{}: can't be laid on a time line with others: {}",
                                             session->trace.path, clock.error().message)};
    }
    session->clock = std::move(*clock);
    session->where_from = described(manifest, *session->clock);
  }
  return {};
}

// On one time line it is the same for all; else each session has its own start.
Status choose_windows(const DumpOptions& options,
                      std::vector<std::unique_ptr<DumpedSession>>& sessions) {
  if (options.when.is_everything()) return {};
  for (const auto& session : sessions) {
    const auto window = select::window_of(options.when, [&] {
      if (!session->clock) return select::session_times(session->reader, session->trace.manifest);
      select::SessionTimes line;
      line.is_time_line = true;
      line.start_ns = UINT64_MAX;
      for (const auto& one : sessions) {
        const select::SessionTimes own = select::session_times(one->reader, std::nullopt);
        line.start_ns = std::min(line.start_ns, one->clock->line_ns(own.start_ns));
      }
      return line;
    });
    if (!window.ok()) return window.error();
    session->window = *window;
  }
  return {};
}

// Empty where it cannot be read, which is printed: events are there without names.
read::SessionManifest manifest_of(const read::Trace& trace, std::ostream& err) {
  if (!trace.manifest) return {};
  auto parsed = read::SessionManifest::of(trace);
  if (parsed) return std::move(parsed).value();
  err << "collectctl: "
      << printable_sentence(fmt::format("{}: {}", trace.manifest_path, parsed.error().message))
      << "; functions stay unnamed\n";
  return {};
}

// Prints which functions were asked for and found nowhere. False: there are some.
bool report_unmatched(const DumpOptions& options,
                      const std::vector<std::unique_ptr<DumpedSession>>& sessions,
                      std::ostream& err) {
  const bool is_part = !options.threads.empty() || !options.when.is_everything();
  bool all_found = true;
  for (const auto& session : sessions) {
    const Status found = session->filter->check_all_found(
        is_part ? "function of the selected events" : "function", session->manifest.symbols);
    if (found.ok()) continue;
    all_found = false;
    err << "collectctl: "
        << printable_sentence((sessions.size() > 1 ? session->trace.path + ": " : "") +
                              found.error().message)
        << "\n";
  }
  return all_found;
}

}  // namespace

int dump(const DumpOptions& options, std::ostream& out, std::ostream& err) {
  const Answer answer{options.json, out, err};
  std::vector<std::unique_ptr<DumpedSession>> sessions;
  bool unreadable = false;
  for (const std::string& path : options.paths) {
    auto trace = read::open_trace(path);
    if (!trace) {
      return answer.refuse(trace.error(), 2);
    }
    if (!trace->choice.empty()) err << "collectctl: " << printable_sentence(trace->choice) << "\n";
    unreadable |= say_unopened(*trace, err);
    const CaptureFormat* format =
        trace->kind == read::TraceKind::kUnknownFile ? capture_format_of(trace->file()) : nullptr;
    const bool is_detail = trace->kind == read::TraceKind::kDetailFile;
    if (options.paths.size() > 1 && (format != nullptr || is_detail)) {
      return answer.refuse_briefly(
          {Code::kUnsupported,
           trace->path + ": is no ATF session: it is printed alone, or converted first"},
          2);
    }
    if (format != nullptr) {
      const int code = dump_capture(*format, options, trace->path, trace->file(), out, err);
      return std::max(code, unreadable ? 1 : 0);
    }
    if (trace->kind == read::TraceKind::kUnknownFile) {
      return answer.refuse(read::not_a_capture(trace->path, trace->file()), 2);
    }
    if (is_detail) return dump_detail_alone(options, *trace, answer);
    read::SessionManifest manifest = manifest_of(*trace, err);
    const auto threads = select::chosen_threads(options.threads, *trace, manifest);
    if (!threads.ok()) {
      return answer.refuse_briefly(threads.error(), threads.code() == Code::kNotFound ? 1 : 2);
    }
    auto session =
        std::make_unique<DumpedSession>(std::move(*trace), std::move(manifest), *threads);
    auto filter = select::FunctionFilter::make(options.functions, session->names);
    if (!filter) return answer.refuse_briefly(filter.error(), 2);
    session->filter = std::move(*filter);
    if (complain(session->reader, err)) unreadable = true;
    sessions.push_back(std::move(session));
  }
  if (options.merged && sessions.size() > 1) {
    const Status placed = place(sessions);
    if (!placed.ok()) return answer.refuse_briefly(placed.error(), 2);
  }
  if (const Status chosen = choose_windows(options, sessions); !chosen.ok()) {
    return answer.refuse_briefly(chosen.error(), 2);
  }
  if (!dump_events(options, sessions, out, percent_line(err, options.progress, "printing"))) {
    return unreadable ? 1 : 0;
  }
  if (!report_unmatched(options, sessions, err)) unreadable = true;
  return unreadable ? 1 : 0;
}

}  // namespace collect::ctl
