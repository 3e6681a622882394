// WTF-trace files: binary of format version 10, the legacy version 3, and the JSON form.
#include <fmt/core.h>

#include <cmath>
#include <cstdio>
#include <ctime>

#include "daemon/ctl/captures/capture_format.h"
#include "daemon/ctl/captures/wtf_dump.h"
#include "formats/core/text/figures.h"
#include "formats/wtf/check.h"
#include "formats/wtf/text.h"
#include "formats/wtf/transcode.h"
#include "storage/convert/wtf/wtf_binary.h"
#include "storage/read/unnamed_file.h"

namespace collect::ctl {
namespace {

constexpr size_t kShownZones = 64;  // as facts; the JSON has all
constexpr size_t kMaxSentences = 100;
// A timebase from 1990 to 2200 is shown as a time of day; others are counts of something.
constexpr double kMinTimebaseMs = 631'152'000'000;
constexpr double kMaxTimebaseMs = 7'258'118'400'000;

CaptureGrade grade_of(wtf::Grade grade) {
  switch (grade) {
    case wtf::Grade::kOk:
      return CaptureGrade::kOk;
    case wtf::Grade::kRecovered:
      return CaptureGrade::kRecovered;
    case wtf::Grade::kDamaged:
      return CaptureGrade::kDamaged;
    case wtf::Grade::kRejected:
      break;
  }
  return CaptureGrade::kRejected;
}

std::string_view form_of(wtf::FileKind kind) {
  switch (kind) {
    case wtf::FileKind::kBinary:
      return "binary";
    case wtf::FileKind::kLegacy:
      return "legacy";
    case wtf::FileKind::kJson:
      return "json";
    case wtf::FileKind::kUnknown:
      break;
  }
  return "unknown";
}

// "2015-07-21 18:20:44.123 UTC", or the number as it is.
std::string timebase_text(double ms) {
  std::string text;
  wtf::append_number(text, ms);
  text += " ms";
  if (!(ms >= kMinTimebaseMs && ms <= kMaxTimebaseMs)) return text;
  const auto seconds = static_cast<time_t>(ms / 1000);
  struct tm utc{};
  char day[32];
  if (::gmtime_r(&seconds, &utc) == nullptr ||
      std::strftime(day, sizeof day, "%Y-%m-%d %H:%M:%S", &utc) == 0) {
    return text;
  }
  char fraction[8];
  std::snprintf(fraction, sizeof fraction, ".%03d", static_cast<int>(std::fmod(ms, 1000.0)));
  return fmt::format("{}{} UTC ({})", day, fraction, text);
}

// "1.250000 s".
std::string seconds_text(uint32_t us) {
  char text[32];
  std::snprintf(text, sizeof text, "%u.%06u s", us / 1'000'000, us % 1'000'000);
  return text;
}

std::string span_text(const std::optional<uint32_t>& first_us,
                      const std::optional<uint32_t>& last_us) {
  if (!first_us || !last_us) return "no events";
  return fmt::format("{} to {}", seconds_text(*first_us), seconds_text(*last_us));
}

std::string zone_text(const wtf::ZoneReport& zone) {
  std::string text = zone.name ? fmt::format("\"{}\"", *zone.name) : "null";
  if (zone.type && !zone.type->empty()) text += fmt::format(" ({})", *zone.type);
  text += fmt::format(": {}, {} up to {} deep", counted(zone.events, "event"),
                      counted(zone.scopes, "scope"), zone.max_scope_depth);
  for (const auto& [count, what] : {std::pair<uint64_t, const char*>{zone.frames, "frame"},
                                    {zone.marks, "mark"},
                                    {zone.time_ranges, "time range"}}) {
    if (count != 0) text += ", " + counted(count, what);
  }
  if (zone.unmatched_leaves != 0) {
    text += fmt::format(", {} without a scope", counted(zone.unmatched_leaves, "leave"));
  }
  if (zone.open_scopes != 0)
    text += fmt::format(", {} never left", counted(zone.open_scopes, "scope"));
  return fmt::format("{}, {}", text, span_text(zone.first_us, zone.last_us));
}

std::string viewer_text(const wtf::FileReport& file) {
  if (file.json.mode == wtf::JsonMode::kPartial) {
    return "the published viewer refuses it: PARTIAL mode, and it reads one document only";
  }
  if (!file.viewer_loads) return "the published viewer refuses it";
  if (!file.viewer_has_events) {
    return "the published viewer loads it without its events, since they are JSON (convert --to "
           "wtf-json writes them as base64, which it reads)";
  }
  const bool json = file.kind == wtf::FileKind::kJson;
  return "the published viewer loads it, named *" +
         std::string(json ? wtf::kJsonSuffix : wtf::kBinarySuffix);
}

void describe(const wtf::FileReport& file, CaptureReport& report) {
  auto& facts = report.facts;
  facts.emplace_back("form",
                     fmt::format("{}, format version {}", form_of(file.kind), file.format_version));
  if (file.header) {
    facts.emplace_back("timebase", timebase_text(file.header->timebase_ms));
    if (file.header->context && !file.header->context->title.empty()) {
      facts.emplace_back("title", file.header->context->title);
    }
  }
  facts.emplace_back("time", span_text(file.first_us, file.last_us));
  if (file.chunks != 0) facts.emplace_back("chunks", with_thousands(file.chunks));
  facts.emplace_back("events", fmt::format("{} of {}", with_thousands(file.events),
                                           counted(file.event_types, "type")));
  if (file.resources != 0) facts.emplace_back("resources", with_thousands(file.resources));
  facts.emplace_back("viewer", viewer_text(file));
  std::string label = "zones";
  for (size_t i = 0; i < std::min(file.zones.size(), kShownZones); ++i) {
    facts.emplace_back(std::exchange(label, ""), zone_text(file.zones[i]));
  }
  if (file.zones.size() > kShownZones) {
    facts.emplace_back("", with_thousands(file.zones.size() - kShownZones) + " more");
  }
}

template <class Value>
void add(Json& json, const char* key, const std::optional<Value>& value) {
  if (value) json[key] = *value;
}

Json json_of(const wtf::ZoneReport& zone) {
  Json json = Json::object();
  add(json, "name", zone.name);
  add(json, "type", zone.type);
  add(json, "location", zone.location);
  for (const auto& [key, count] : {std::pair<const char*, uint64_t>{"events", zone.events},
                                   {"scopes", zone.scopes},
                                   {"max_scope_depth", zone.max_scope_depth},
                                   {"distinct_names", zone.distinct_names},
                                   {"frames", zone.frames},
                                   {"marks", zone.marks},
                                   {"time_ranges", zone.time_ranges},
                                   {"backward_steps", zone.backward_steps},
                                   {"unmatched_leaves", zone.unmatched_leaves},
                                   {"open_scopes", zone.open_scopes}}) {
    json[key] = count;
  }
  add(json, "first_us", zone.first_us);
  add(json, "last_us", zone.last_us);
  json["most_frequent"] = Json::array();
  for (const auto& [name, count] : zone.most_frequent) {
    json["most_frequent"].push_back({{"name", name}, {"count", count}});
  }
  return json;
}

Json json_of(const wtf::FileReport& file) {
  Json json{{"form", form_of(file.kind)},
            {"format_version", file.format_version},
            {"tool_version", file.tool_version},
            {"bytes", file.bytes}};
  if (file.header && std::isfinite(file.header->timebase_ms)) {
    json["timebase_ms"] = file.header->timebase_ms;
  }
  add(json, "first_us", file.first_us);
  add(json, "last_us", file.last_us);
  json["chunks"] = file.chunks;
  json["event_types"] = file.event_types;
  json["events"] = file.events;
  json["resources"] = file.resources;
  json["viewer_loads"] = file.viewer_loads;
  json["viewer_has_events"] = file.viewer_has_events;
  json["zones"] = Json::array();
  for (const wtf::ZoneReport& zone : file.zones) json["zones"].push_back(json_of(zone));
  return json;
}

CaptureReport check_wtf(Bytes file, const BytesDone& done) {
  const auto on_bytes = [](void* context, uint64_t bytes) {
    (*static_cast<const BytesDone*>(context))(bytes);
  };
  BytesDone progress = done;
  const wtf::FileReport found =
      done ? wtf::check_file(file, on_bytes, &progress) : wtf::check_file(file);
  if (done) done(file.size());
  CaptureReport report;
  report.grade = grade_of(found.grade);
  report.counts = fmt::format("{} zones, {} events of {} types", found.zones.size(), found.events,
                              found.event_types);
  if (report.grade != CaptureGrade::kRejected) {
    report.json = json_of(found);
    if (found.first_us) report.first_ns = uint64_t{*found.first_us} * 1000;
    describe(found, report);
  }
  for (const wtf::Finding& finding : found.findings.list()) {
    report.findings.push_back(
        {finding.severity, wtf::rule_name(finding.rule), finding.offset, finding.sentence});
  }
  report.errors = found.findings.errors();
  report.warnings = found.findings.warnings();
  report.notes = found.findings.notes();
  return report;
}

// ---- recover

// In the form that the file has: viewers go by its name.
Status rewrite(Bytes file, ByteSink& out, const BytesDone& done, wtf::Findings& findings) {
  const auto binary = convert::WtfBinary::of(file, findings);
  if (!binary.ok()) return binary.error();
  if (wtf::file_kind(file.first(std::min(file.size(), wtf::kSniffBytes))) != wtf::FileKind::kJson) {
    const auto events = wtf::rewrite(binary->bytes(), out, findings, done);
    return events.ok() ? Status() : events.error();
  }
  auto whole = read::UnnamedFile::create(read::temporary_directory());
  if (!whole.ok()) return whole.error();
  const auto events = wtf::rewrite(binary->bytes(), *whole, findings, done);
  if (!events.ok()) return events.error();
  const auto bytes = whole->bytes();
  if (!bytes.ok()) return bytes.error();
  wtf::Findings again;
  constexpr wtf::JsonOptions kForViewers = {wtf::JsonMode::kComplete, wtf::JsonEvents::kBase64};
  const auto written = wtf::binary_to_json(bytes->bytes(), kForViewers, out, again);
  return written.ok() ? Status() : written.error();
}

Result<std::vector<std::string>> recover_wtf(Bytes file, ByteSink& out, const BytesDone& done) {
  wtf::Findings findings;
  const Status written = rewrite(file, out, done, findings);
  if (!written.ok()) {
    const bool nothing = written.code() == Code::kUnsupported || written.code() == Code::kTruncated;
    return nothing ? Error{Code::kDamaged, written.error().message} : written.error();
  }
  std::vector<std::string> sentences;
  uint64_t more = 0;
  for (const wtf::Finding& finding : findings.list()) {
    if (finding.severity == Severity::kNote) continue;
    if (sentences.size() < kMaxSentences) {
      sentences.push_back(fmt::format("at {}: {}", finding.offset, finding.sentence));
    } else {
      ++more;
    }
  }
  more += findings.unlisted();
  if (more != 0) sentences.push_back(fmt::format("{} more like these", more));
  return sentences;
}

}  // namespace

const CaptureFormat kWtfCapture{"wtf", "WTF-trace", check_wtf, dump_wtf, recover_wtf};

}  // namespace collect::ctl
