#include "daemon/ctl/inspection_json.h"

namespace collect::ctl {
namespace {

// One JSON document, keys in the order that they are written here.
class JsonInspection {
 public:
  JsonInspection(const Trace& trace, const TraceReport& report, TextOut& out)
      : trace_(trace), report_(report), out_(out) {}

  void print() {
    open('{');
    text("path", trace_.path);
    text("format", "atf");
    text("kind", kind_name(trace_.kind));
    text("result", report_.result());
    print_health();
    number("events", report_.events());
    number("detail_records", report_.detail_records());
    number("lost_events", report_.lost_events());
    time("first_ns", report_.first_ns());
    time("last_ns", report_.last_ns());
    number("errors", report_.count(Severity::kError));
    number("warnings", report_.count(Severity::kWarning));
    key("clock");
    print_clock();
    key("manifest");
    print_manifest();
    key("threads");
    open('[');
    for (const atf::ThreadReport& thread : report_.threads) print_thread(thread);
    close(']');
    close('}');
    out_.put('\n');
  }

 private:
  void separate() {
    if (!first_) out_.put(',');
    first_ = false;
  }
  void open(char bracket) {
    out_.put(bracket);
    first_ = true;
  }
  void close(char bracket) {
    out_.put(bracket);
    first_ = false;
  }
  void key(std::string_view name) {
    separate();
    out_.json_string(name);
    out_.put(':');
  }
  void text(std::string_view name, std::string_view value) {
    key(name);
    out_.json_string(value);
  }
  void number(std::string_view name, uint64_t value) {
    key(name);
    out_.dec(value);
  }
  void time(std::string_view name, const std::optional<uint64_t>& value) {
    key(name);
    if (value) {
      out_.dec(*value);
    } else {
      out_.put("null");
    }
  }

  void print_health() {
    key("health");
    if (!report_.health) {
      out_.put("null");
      return;
    }
    open('{');
    text("state", storage::session_state_name(report_.health->state));
    key("losses_known");
    out_.put(report_.health->losses_known ? "true" : "false");
    text("missing", report_.health->missing);
    close('}');
  }

  void print_clock() {
    const auto clock = device_clock_of(trace_);
    if (!clock) {
      out_.put("null");
      return;
    }
    open('{');
    number("comparisons", clock->is_compared() ? clock->comparisons() : 0);
    time("best_uncertainty_ns",
         clock->is_compared() ? std::optional(clock->best_uncertainty_ns()) : std::nullopt);
    close('}');
  }

  void print_manifest() {
    if (!report_.manifest) {
      out_.put("null");
      return;
    }
    const SessionManifest& manifest = *report_.manifest;
    open('{');
    text("format_version", manifest.format_version);
    text("state", manifest.state);
    text("process", manifest.process_name);
    number("threads", manifest.threads.size());
    number("modules", manifest.modules.size());
    number("symbols", manifest.symbols.size());
    number("gaps", manifest.gaps.size());
    number("stalls", manifest.stall_totals().count);
    number("stalled_ns", manifest.stall_totals().stalled_ns);
    close('}');
  }

  void print_thread(const atf::ThreadReport& thread) {
    separate();
    open('{');
    number("thread", thread.n);
    if (thread.rejected) {
      text("state", "rejected");
      text("error", first_sentence(thread));
      close('}');
      return;
    }
    text("state", atf::to_text(thread.state));
    if (thread.header) print_index(thread);
    number("errors", thread.findings.errors());
    number("warnings", thread.findings.warnings());
    key("detail");
    print_detail(thread.detail);
    close('}');
  }

  void print_index(const atf::ThreadReport& thread) {
    const atf::IndexHeader& header = *thread.header;
    number("version", static_cast<uint64_t>(header.version));
    number("tid", header.thread_id);
    text("arch", atf::to_text(header.arch));
    text("os", atf::to_text(header.os));
    text("clock", atf::to_text(header.clock));
    text("checksum", atf::to_text(thread.checksum));
    number("events", thread.events);
    number("calls", thread.calls);
    number("returns", thread.returns);
    number("exceptions", thread.exceptions);
    number("functions", thread.functions);
    number("links", thread.links);
    time("first_ns", thread.first_ns);
    time("last_ns", thread.last_ns);
    time("min_ns", thread.min_ns);
    time("max_ns", thread.max_ns);
    number("backward_steps", thread.backward_steps);
    number("trailing_bytes", thread.trailing_bytes);
  }

  void print_detail(const atf::DetailReport& detail) {
    if (!detail.present) {
      out_.put("null");
      return;
    }
    open('{');
    text("state", detail.rejected ? std::string_view("rejected") : atf::to_text(detail.state));
    text("checksum", atf::to_text(detail.checksum));
    number("records", detail.records);
    number("bytes", detail.bytes);
    number("trailing_bytes", detail.trailing_bytes);
    number("documented_payloads", detail.documented_payloads);
    number("tracer_payloads", detail.tracer_payloads);
    number("opaque_payloads", detail.opaque_payloads);
    close('}');
  }

  const Trace& trace_;
  const TraceReport& report_;
  TextOut& out_;
  bool first_ = true;
};

}  // namespace

std::string_view kind_name(TraceKind kind) {
  switch (kind) {
    case TraceKind::kSession:
      return "session";
    case TraceKind::kThread:
      return "thread";
    case TraceKind::kIndexFile:
      return "index";
    case TraceKind::kDetailFile:
      return "detail";
    case TraceKind::kUnknownFile:
      return "unknown";
  }
  return "session";
}

std::string_view first_sentence(const atf::ThreadReport& thread) {
  return thread.findings.list().empty() ? std::string_view("nothing to read")
                                        : std::string_view(thread.findings.list()[0].sentence);
}

std::optional<DeviceClock> device_clock_of(const Trace& trace) {
  if (trace.kind != TraceKind::kSession || !trace.manifest) return std::nullopt;
  const auto manifest = storage::manifest_from_json(*trace.manifest);
  if (!manifest.ok()) return std::nullopt;
  auto clock = TimeLine().add(*manifest);
  if (!clock.ok()) return std::nullopt;
  return std::move(*clock);
}

void print_inspection_json(const Trace& trace, const TraceReport& report, TextOut& out) {
  JsonInspection(trace, report, out).print();
}

}  // namespace collect::ctl
