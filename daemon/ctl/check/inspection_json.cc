#include "daemon/ctl/check/inspection_json.h"

namespace collect::ctl {
namespace {

void add_number(Json& object, const char* key, const std::optional<uint64_t>& number) {
  if (number) object[key] = *number;
}

Json json_of(const storage::SessionHealth& health) {
  Json json{{"state", storage::session_state_name(health.state)},
            {"losses_known", health.losses_known}};
  add_text(json, "missing", health.missing);
  return json;
}

Json json_of(const select::DeviceClock& clock) {
  Json json{{"comparisons", clock.is_compared() ? clock.comparisons() : 0}};
  if (clock.is_compared()) json["best_uncertainty_ns"] = clock.best_uncertainty_ns();
  return json;
}

Json json_of(const read::SessionManifest& manifest) {
  Json json{{"format_version", manifest.format_version}};
  add_text(json, "state", manifest.said_state);
  add_text(json, "process", manifest.identity.process_name);
  json["threads"] = manifest.threads.size();
  json["modules"] = manifest.modules.size();
  json["symbols"] = manifest.symbols.size();
  json["gaps"] = manifest.gaps.size();
  json["stalls"] = manifest.stall_totals().count;
  json["stalled_ns"] = manifest.stall_totals().stalled_ns;
  return json;
}

Json json_of(const atf::DetailReport& detail) {
  return Json{{"state", detail.rejected ? std::string_view("rejected") : to_text(detail.state)},
              {"checksum", to_text(detail.checksum)},
              {"records", detail.records},
              {"bytes", detail.bytes},
              {"trailing_bytes", detail.trailing_bytes},
              {"documented_payloads", detail.documented_payloads},
              {"tracer_payloads", detail.tracer_payloads},
              {"opaque_payloads", detail.opaque_payloads}};
}

void add_index(Json& json, const atf::ThreadReport& thread) {
  const atf::IndexHeader& header = *thread.header;
  json["atf_version"] = static_cast<uint64_t>(header.version);
  json["tid"] = header.thread_id;
  json["arch"] = to_text(header.arch);
  json["os"] = to_text(header.os);
  json["clock"] = to_text(header.clock);
  json["checksum"] = to_text(thread.checksum);
  json["events"] = thread.events;
  json["calls"] = thread.calls;
  json["returns"] = thread.returns;
  json["exceptions"] = thread.exceptions;
  json["functions"] = thread.functions;
  json["links"] = thread.links;
  add_number(json, "first_ns", thread.first_ns);
  add_number(json, "last_ns", thread.last_ns);
  add_number(json, "min_ns", thread.min_ns);
  add_number(json, "max_ns", thread.max_ns);
  json["backward_steps"] = thread.backward_steps;
  json["trailing_bytes"] = thread.trailing_bytes;
}

Json json_of(const atf::ThreadReport& thread) {
  Json json{{"thread", thread.n}};
  if (thread.rejected) {
    json["state"] = "rejected";
    json["error"] = first_sentence(thread);
    return json;
  }
  json["state"] = to_text(thread.state);
  if (thread.header) add_index(json, thread);
  json["errors"] = thread.findings.errors();
  json["warnings"] = thread.findings.warnings();
  if (thread.detail.present) json["detail"] = json_of(thread.detail);
  return json;
}

}  // namespace

std::string_view kind_name(read::TraceKind kind) {
  switch (kind) {
    case read::TraceKind::kSession:
      return "session";
    case read::TraceKind::kThread:
      return "thread";
    case read::TraceKind::kIndexFile:
      return "index";
    case read::TraceKind::kDetailFile:
      return "detail";
    case read::TraceKind::kUnknownFile:
      return "unknown";
  }
  return "session";
}

std::string_view first_sentence(const atf::ThreadReport& thread) {
  return thread.findings.list().empty() ? std::string_view("nothing to read")
                                        : std::string_view(thread.findings.list()[0].sentence);
}

std::optional<select::DeviceClock> device_clock_of(const read::Trace& trace) {
  if (trace.kind != read::TraceKind::kSession || !trace.manifest) return std::nullopt;
  const auto manifest = storage::manifest_from_json(*trace.manifest);
  if (!manifest.ok()) return std::nullopt;
  auto clock = select::TimeLine().add(*manifest);
  if (!clock.ok()) return std::nullopt;
  return std::move(*clock);
}

Json inspection_json(const read::Trace& trace, const TraceReport& report) {
  Json json = json_document();
  json["path"] = trace.path;
  json["format"] = "atf";
  json["kind"] = kind_name(trace.kind);
  json["result"] = report.result();
  if (report.health) json["health"] = json_of(*report.health);
  json["events"] = report.events();
  json["detail_records"] = report.detail_records();
  json["lost_events"] = report.lost_events();
  add_number(json, "first_ns", report.first_ns());
  add_number(json, "last_ns", report.last_ns());
  json["errors"] = report.count(Severity::kError);
  json["warnings"] = report.count(Severity::kWarning);
  if (const auto clock = device_clock_of(trace)) json["clock"] = json_of(*clock);
  if (report.manifest) json["manifest"] = json_of(*report.manifest);
  json["threads"] = Json::array();
  for (const atf::ThreadReport& thread : report.threads) json["threads"].push_back(json_of(thread));
  return json;
}

}  // namespace collect::ctl
