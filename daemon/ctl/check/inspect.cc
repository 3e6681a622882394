#include "daemon/ctl/check/inspect.h"

#include <fmt/core.h>

#include <algorithm>
#include <ostream>

#include "daemon/ctl/captures/capture_format.h"
#include "daemon/ctl/check/inspection_json.h"
#include "daemon/ctl/check/switched_off.h"
#include "daemon/ctl/check/trace_check.h"
#include "daemon/ctl/terminal/text_out.h"
#include "formats/core/text/figures.h"
#include "storage/read/capture_kind.h"

namespace collect::ctl {
namespace {

std::string_view grade_color(atf::Grade grade) {
  switch (grade) {
    case atf::Grade::kOk:
      return "\x1b[32m";
    case atf::Grade::kRecovered:
      return "\x1b[33m";
    default:
      return "\x1b[31m";
  }
}

class TextInspection {
 public:
  TextInspection(const InspectOptions& options, const read::Trace& trace, const TraceReport& report,
                 TextOut& out)
      : options_(options), trace_(trace), report_(report), out_(out) {}

  void print() {
    out_.printable(trace_.path);
    out_.put(": ATF ");
    out_.put(kind_name(trace_.kind));
    out_.put(", ");
    if (options_.color) out_.control(grade_color(report_.grade));
    out_.put(report_.result());
    if (options_.color) out_.control("\x1b[0m");
    out_.put('\n');
    print_session();
    for (size_t i = 0; i < report_.threads.size(); ++i) print_thread(report_.threads[i]);
    print_health();
  }

 private:
  void line(std::string_view label) {
    out_.put("  ");
    out_.put(label);
    out_.repeat(' ', label.size() < 10 ? 10 - label.size() : 1);
  }

  void print_session() {
    if (const auto& manifest = report_.manifest;
        manifest && trace_.kind == read::TraceKind::kSession) {
      line("manifest");
      out_.printable(manifest->said_state);
      out_.put(manifest->said_state.empty() ? "format " : ", format ");
      out_.printable(manifest->format_version);
      const std::string& process = manifest->identity.process_name;
      if (!process.empty()) {
        out_.put(", process ");
        out_.printable(process);
      }
      out_.put(", ");
      out_.count(manifest->modules.size(), "module");
      out_.put(", ");
      out_.count(manifest->symbols.size(), "symbol");
      out_.put('\n');
    }
    if (const auto clock = device_clock_of(trace_)) {
      line("clock");
      out_.sentence(clock->sentence());
      out_.put('\n');
    }
    line("events");
    out_.dec(report_.events());
    out_.put(" in ");
    out_.count(report_.threads.size(), "thread");
    out_.put(", ");
    out_.count(report_.detail_records(), "detail");
    out_.put(", ");
    out_.dec(report_.lost_events());
    out_.put(report_.is_complete() ? " lost\n" : " known to be lost\n");
    print_stalls();
    print_switched_off();
    if (report_.health) {
      line("health");
      out_.put(storage::session_state_name(report_.health->state));
      if (!report_.health->missing.empty()) out_.put(": ");
      out_.sentence(report_.health->missing);
      out_.put('\n');
    }
    if (!report_.first_ns()) return;
    line("time");
    out_.dec(*report_.first_ns());
    out_.put("..");
    out_.dec(*report_.last_ns());
    out_.put(" ns (");
    out_.put(duration_text(*report_.last_ns() - *report_.first_ns()));
    out_.put(")\n");
  }

  void print_stalls() {
    if (!report_.manifest || trace_.kind != read::TraceKind::kSession) return;
    const storage::StallTotals stalls = report_.manifest->stall_totals();
    if (stalls.switches != 0) {
      line("off CPU");
      out_.put(fmt::format("{} times: {} blocked, {} preempted\n", with_thousands(stalls.switches),
                           duration_text(stalls.blocked_ns), duration_text(stalls.preempted_ns)));
    }
    if (stalls.count == 0) return;
    line("stalls");
    out_.dec(stalls.count);
    out_.put(", ");
    out_.put(fmt::format("{}, of these {} waiting for the collector\n",
                         duration_text(stalls.stalled_ns), duration_text(stalls.page_wait_ns)));
  }

  void print_switched_off() {
    if (!report_.manifest || trace_.kind != read::TraceKind::kSession) return;
    const auto functions = switched_off(*report_.manifest);
    if (functions.empty()) return;
    line("off");
    out_.put("functions that --max-rate switched off: ");
    out_.put(switched_off_text(functions));
    out_.put('\n');
  }

  void print_thread(const atf::ThreadReport& thread) {
    out_.put("thread ");
    out_.dec(thread.n);
    const read::ManifestThread* said =
        report_.manifest ? report_.manifest->thread(thread.n) : nullptr;
    if (said != nullptr && !said->name.empty()) {
      out_.put(" \"");
      out_.printable(said->name);
      out_.put('"');
    }
    if (thread.rejected) {
      out_.put(": rejected: ");
      out_.sentence(first_sentence(thread));
      out_.put('\n');
      return;
    }
    out_.put('\n');
    if (thread.header) print_index(thread);
    if (thread.detail.present) print_detail(thread.detail);
  }

  void print_index(const atf::ThreadReport& thread) {
    const atf::IndexHeader& header = *thread.header;
    line("header");
    out_.put("version ");
    out_.dec(static_cast<uint64_t>(header.version));
    out_.put(", ");
    out_.put(atf::to_text(header.arch));
    out_.put(", ");
    out_.put(atf::to_text(header.os));
    out_.put(", clock ");
    out_.put(atf::to_text(header.clock));
    out_.put(", thread id ");
    out_.dec(header.thread_id);
    out_.put('\n');
    line("index");
    out_.put(atf::to_text(thread.state));
    out_.put(", checksum ");
    out_.put(atf::to_text(thread.checksum));
    out_.put(", ");
    out_.count(thread.events, "event");
    out_.put(": ");
    out_.count(thread.calls, "call");
    out_.put(", ");
    out_.count(thread.returns, "return");
    out_.put(", ");
    out_.count(thread.exceptions, "exception");
    out_.put(", ");
    out_.count(thread.functions, "function");
    out_.put('\n');
    if (!thread.first_ns) return;
    line("time");
    out_.dec(*thread.first_ns);
    out_.put("..");
    out_.dec(*thread.last_ns);
    out_.put(" ns\n");
  }

  void print_detail(const atf::DetailReport& detail) {
    line("detail");
    if (detail.rejected) {
      out_.put("rejected\n");
      return;
    }
    out_.put(atf::to_text(detail.state));
    out_.put(", checksum ");
    out_.put(atf::to_text(detail.checksum));
    out_.put(", ");
    out_.count(detail.records, "record");
    out_.put(", ");
    out_.count(detail.bytes, "byte");
    out_.put("; payloads: ");
    out_.dec(detail.documented_payloads);
    out_.put(" documented, ");
    out_.dec(detail.tracer_payloads);
    out_.put(" tracer blocks, ");
    out_.dec(detail.opaque_payloads);
    out_.put(" opaque\n");
  }

  void print_health() {
    const uint64_t errors = report_.count(Severity::kError);
    const uint64_t warnings = report_.count(Severity::kWarning);
    if (errors + warnings == 0) return;
    out_.count(errors, "error");
    out_.put(", ");
    out_.count(warnings, "warning");
    out_.put("; collectctl verify lists them\n");
  }

  const InspectOptions& options_;
  const read::Trace& trace_;
  const TraceReport& report_;
  TextOut& out_;
};

// A file that begins like no format we know, shown by its first bytes.
void print_unknown(TextOut& out, const read::Trace& trace, bool json) {
  constexpr size_t kShownBytes = 16;
  const Bytes content = trace.threads[0].index.bytes();
  const Bytes shown = content.first(std::min(kShownBytes, content.size()));
  if (json) {
    TextBuffer hex;
    hex.hex_bytes(shown);
    Json document = json_document();
    document["path"] = trace.path;
    document["result"] = "rejected";
    document["begins_with"] = hex.text();
    out.put(json_line(document));
    return;
  }
  out.printable(trace.path);
  if (content.empty()) {
    out.put(": empty\n");
    return;
  }
  out.put(": ");
  out.put(read::kNotACapture);
  out.put("; it begins with ");
  out.hex_bytes(shown);
  out.put('\n');
}

}  // namespace

int inspect(const InspectOptions& options, std::ostream& out, std::ostream& err) {
  auto trace = read::open_trace(options.path);
  if (!trace) {
    return Answer{options.json, out, err}.refuse(trace.error(), 2);
  }
  if (!trace->choice.empty()) err << "collectctl: " << printable_sentence(trace->choice) << "\n";
  (void)say_unopened(*trace, err);
  if (trace->kind == read::TraceKind::kUnknownFile) {
    if (const CaptureFormat* format = capture_format_of(trace->file())) {
      return inspect_capture(*format, options, *trace, out, err);
    }
    const auto kind = read::capture_kind_of(trace->file());
    if (kind && read::is_timeline(*kind)) {
      return Answer{options.json, out, err}.refuse(read::not_a_capture(trace->path, trace->file()),
                                                   2);
    }
  }
  TextOut text(out);
  if (trace->kind == read::TraceKind::kUnknownFile) {
    print_unknown(text, *trace, options.json);
    return 1;
  }
  const TraceReport report = check_trace(*trace, progress_line(err, options.progress));
  if (options.json) {
    text.put(json_line(inspection_json(*trace, report)));
  } else {
    TextInspection(options, *trace, report, text).print();
  }
  return report.grade == atf::Grade::kRejected ? 1 : 0;
}

}  // namespace collect::ctl
