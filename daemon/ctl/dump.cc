#include "daemon/ctl/dump.h"

#include <algorithm>
#include <ostream>

#include "daemon/ctl/captures/capture_format.h"
#include "daemon/ctl/event_dump.h"
#include "daemon/ctl/text_out.h"
#include "daemon/ctl/thread_choice.h"
#include "daemon/ctl/trace_check.h"
#include "storage/manifest.h"

namespace collect::ctl {
namespace {

// A detail file without its index beside it: its records are all there is.
int dump_detail_alone(const DumpOptions& options, const Trace& trace, std::ostream& out,
                      std::ostream& err) {
  atf::Findings findings;
  const auto reader = atf::DetailReader::open(trace.threads[0].detail->bytes(), findings);
  if (!reader) {
    err << "dump: " << printable(trace.path) << ": "
        << printable_sentence(findings.list().front().sentence) << "\n";
    return 1;
  }
  TextOut text(out);
  atf::DetailCursor cursor = reader->records();
  for (uint64_t printed = 0; printed < options.limit && text.ok();) {
    const uint64_t seq = cursor.seq();
    const auto record = cursor.next();
    if (!record) break;
    if (record->timestamp_ns < options.from_ns || record->timestamp_ns > options.to_ns) continue;
    if (options.json) {
      print_detail_json(text, seq, *record);
    } else {
      print_detail_text(text, seq, *record);
    }
    ++printed;
  }
  return 0;
}

// Threads that cannot be read.
bool complain(const atf::SessionReader& session, std::ostream& err) {
  bool unreadable = false;
  for (const atf::SessionThread& thread : session.threads()) {
    if (thread.index) continue;
    unreadable = true;
    err << "dump: thread " << thread.n << ": "
        << printable_sentence(thread.findings.list().front().sentence) << "; left out\n";
  }
  return unreadable;
}

// How the session's clock is known, and of whom it is.
std::string described(const storage::Manifest& manifest, const DeviceClock& clock) {
  const storage::SessionIdentity& process = manifest.identity;
  std::string text = process.process_name;
  const std::string& device =
      process.device_model.empty() ? process.device_id : process.device_model;
  if (!device.empty()) text += " on " + device;
  return text + "; " + clock.sentence();
}

// Lays all of them on one time line. Empty: done; else why one cannot be.
std::string place(std::vector<std::unique_ptr<DumpedSession>>& sessions) {
  TimeLine line;
  for (const auto& session : sessions) {
    storage::Manifest manifest;
    if (session->trace.manifest) {
      auto whole = storage::manifest_from_json(*session->trace.manifest);
      if (whole.ok()) manifest = std::move(*whole);
    }
    auto clock = line.add(manifest);
    if (!clock.ok()) {
      return session->trace.path +
             ": can't be laid on a time line with others: " + clock.error().message;
    }
    session->clock = std::move(*clock);
    session->where_from = described(manifest, *session->clock);
  }
  return "";
}

}  // namespace

int dump(const DumpOptions& options, std::ostream& out, std::ostream& err) {
  std::vector<std::unique_ptr<DumpedSession>> sessions;
  bool unreadable = false;
  for (const std::string& path : options.paths) {
    auto trace = open_trace(path);
    if (!trace) {
      err << "dump: " << to_string(trace.error()) << "\n";
      return 2;
    }
    if (!trace->choice.empty()) err << "dump: " << printable_sentence(trace->choice) << "\n";
    unreadable |= say_unopened("dump", *trace, err);
    const CaptureFormat* format =
        trace->kind == TraceKind::kUnknownFile ? capture_format_of(trace->file()) : nullptr;
    const bool is_detail = trace->kind == TraceKind::kDetailFile;
    if (options.paths.size() > 1 && (format != nullptr || is_detail)) {
      err << "dump: " << printable(trace->path)
          << ": is no ATF session: it is printed alone, or converted"
          << " first\n";
      return 2;
    }
    if (format != nullptr) {
      const int code = dump_capture(*format, options, trace->path, trace->file(), out, err);
      return std::max(code, unreadable ? 1 : 0);
    }
    if (trace->kind == TraceKind::kUnknownFile) {
      err << "dump: " << to_string(not_a_capture(trace->path, trace->file())) << "\n";
      return 2;
    }
    if (is_detail) return dump_detail_alone(options, *trace, out, err);
    SessionManifest manifest;
    if (trace->manifest) {
      auto parsed = SessionManifest::parse(*trace->manifest);
      if (parsed) {
        manifest = std::move(parsed).value();
      } else {
        err << "dump: " << printable_sentence(trace->manifest_path + ": " + parsed.error().message)
            << "; functions stay unnamed\n";
      }
    }
    const auto threads = chosen_threads(options.threads, *trace, manifest);
    if (!threads.ok()) {
      err << "dump: " << printable_sentence(threads.error().message) << "\n";
      return threads.code() == Code::kNotFound ? 1 : 2;
    }
    auto session =
        std::make_unique<DumpedSession>(std::move(*trace), std::move(manifest), *threads);
    auto filter = FunctionFilter::make(options.functions, session->names);
    if (!filter) {
      err << "dump: " << printable_sentence(filter.error().message) << "\n";
      return 2;
    }
    session->filter = std::move(*filter);
    if (complain(session->reader, err)) unreadable = true;
    sessions.push_back(std::move(session));
  }
  if (options.merged && sessions.size() > 1) {
    const std::string problem = place(sessions);
    if (!problem.empty()) {
      err << "dump: " << printable_sentence(problem) << "\n";
      return 2;
    }
  }
  if (!dump_events(options, sessions, out)) return unreadable ? 1 : 0;
  for (const auto& session : sessions) {
    const bool is_part = !options.threads.empty() || options.from_ns != 0 ||
                         options.to_ns != std::numeric_limits<uint64_t>::max();
    const Status found = session->filter->check_all_found(
        is_part ? "function of the selected events" : "function", session->manifest.symbols);
    if (found.ok()) continue;
    unreadable = true;
    err << "dump: "
        << printable_sentence((sessions.size() > 1 ? session->trace.path + ": " : "") +
                              found.error().message)
        << "\n";
  }
  return unreadable ? 1 : 0;
}

}  // namespace collect::ctl
