// dial9 streams: of any service, and our own sessions in them (convert/dial9_session.h).
#include <fmt/core.h>

#include <algorithm>
#include <ctime>
#include <optional>
#include <vector>

#include "daemon/ctl/captures/capture_format.h"
#include "daemon/ctl/captures/dial9_dump.h"
#include "formats/core/text/figures.h"
#include "formats/dial9/check.h"
#include "formats/dial9/copy.h"

namespace collect::ctl {
namespace {

constexpr size_t kShownNames = 12;  // event names that inspect lists for people
constexpr size_t kShownName = 200;  // bytes of a name on one line
constexpr uint64_t kSecond = 1'000'000'000;

// "2026-04-17T03:22:46Z"
std::string utc_of(uint64_t unix_ns) {
  const auto seconds = static_cast<time_t>(unix_ns / kSecond);
  std::tm parts{};
  char text[40];
  if (::gmtime_r(&seconds, &parts) == nullptr ||
      std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts) == 0) {
    return fmt::format("{} ns", unix_ns);
  }
  return text;
}

// ---- inspect and verify

// Most frequent first.
std::vector<std::pair<std::string, uint64_t>> names_by_count(const dial9::Report& report) {
  std::vector<std::pair<std::string, uint64_t>> names(report.events_by_name.begin(),
                                                      report.events_by_name.end());
  std::sort(names.begin(), names.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  return names;
}

void describe_names(const dial9::Report& report, CaptureReport& out) {
  const auto names = names_by_count(report);
  std::string label = "names";
  const size_t shown = std::min(names.size(), kShownNames);
  for (size_t i = 0; i < shown; ++i) {
    out.facts.emplace_back(std::exchange(label, ""),
                           fmt::format("{} {}", with_thousands(names[i].second),
                                       names[i].first.substr(0, kShownName)));
  }
  uint64_t others = report.events_of_other_names;
  for (size_t i = shown; i < names.size(); ++i) others += names[i].second;
  if (others != 0) {
    out.facts.emplace_back(std::exchange(label, ""), with_thousands(others) + " of other names");
  }
}

void describe_times(const dial9::TimeSummary& times, CaptureReport& out) {
  if (times.range_begin_ns) {
    const uint64_t length = *times.range_end_ns - *times.range_begin_ns;
    out.facts.emplace_back("time",
                           fmt::format("{} s to {} s, {}", dial9_seconds(*times.range_begin_ns),
                                       dial9_seconds(*times.range_end_ns),
                                       short_duration(static_cast<double>(length) / kSecond)));
  }
  if (times.clock_sync) {
    const dial9::ClockSync& sync = *times.clock_sync;
    out.facts.emplace_back("clock", fmt::format("at {} s it was {}", dial9_seconds(sync.time_ns),
                                                utc_of(sync.realtime_ns)));
  }
  if (times.older_than_earlier != 0) {
    out.facts.emplace_back("order", with_thousands(times.older_than_earlier) +
                                        " events are older than an earlier one, as recorders of "
                                        "several threads write them");
  }
}

void describe(const dial9::Report& report, CaptureReport& out) {
  out.facts.emplace_back("sub-streams", with_thousands(report.sub_streams));
  out.facts.emplace_back("events", with_thousands(report.events));
  describe_names(report, out);
  describe_times(report.times, out);
  out.facts.emplace_back("pools", fmt::format("{}, {}", counted(report.pool_strings, "text"),
                                              counted(report.pool_stacks, "stack")));
  out.facts.emplace_back(
      "frames",
      fmt::format("{}, {}, {}, {}, {}", counted(report.schemas, "schema"),
                  counted(report.string_pools, "string pool"),
                  counted(report.stack_pools, "stack pool"), counted(report.resets, "reset"),
                  counted(report.annotations, "annotation")));
  if (report.problem) {
    out.facts.emplace_back("not read",
                           fmt::format("{} bytes from offset {}: {}",
                                       with_thousands(report.bytes - report.whole_bytes),
                                       report.whole_bytes, report.problem->sentence));
  }
}

Json json_of(const dial9::Report& report) {
  Json json{{"bytes", report.bytes},
            {"whole_bytes", report.whole_bytes},
            {"sub_streams", report.sub_streams},
            {"schemas", report.schemas},
            {"events", report.events},
            {"string_pools", report.string_pools},
            {"stack_pools", report.stack_pools},
            {"resets", report.resets},
            {"annotations", report.annotations},
            {"pool_strings", report.pool_strings},
            {"pool_stacks", report.pool_stacks}};
  // The names are UTF-8: the decoder refuses a schema with another one.
  json["events_by_name"] = nlohmann::json(report.events_by_name);
  json["events_of_other_names"] = report.events_of_other_names;
  json["events_without_time"] = report.times.events_without_time;
  json["events_older_than_an_earlier_one"] = report.times.older_than_earlier;
  if (report.times.range_begin_ns) json["time_start_ns"] = *report.times.range_begin_ns;
  if (report.times.range_end_ns) json["time_end_ns"] = *report.times.range_end_ns;
  if (report.times.clock_sync) {
    json["clock_sync"] = {{"time_ns", report.times.clock_sync->time_ns},
                          {"realtime_ns", report.times.clock_sync->realtime_ns}};
  }
  if (report.problem) {
    json["problem"] = {{"rule", dial9::rule_name(report.problem->rule)},
                       {"frame_offset", report.problem->frame_offset},
                       {"offset", report.problem->offset},
                       {"sentence", report.problem->sentence}};
  }
  return json;
}

CaptureGrade grade_of(dial9::Grade grade) {
  switch (grade) {
    case dial9::Grade::kOk:
      return CaptureGrade::kOk;
    case dial9::Grade::kTruncated:
      return CaptureGrade::kRecovered;
    case dial9::Grade::kDamaged:
      return CaptureGrade::kDamaged;
    case dial9::Grade::kRejected:
      break;
  }
  return CaptureGrade::kRejected;
}

CaptureReport check_dial9(Bytes file, const BytesDone& done) {
  const dial9::Report report = dial9::check_stream(file);
  if (done) done(file.size());
  CaptureReport out;
  out.grade = grade_of(report.grade);
  out.counts = fmt::format("{} sub-streams, {} schemas, {} events", report.sub_streams,
                           report.schemas, report.events);
  describe(report, out);
  out.json = json_of(report);
  out.first_ns = report.times.range_begin_ns;
  for (const dial9::Finding& finding : report.findings.list()) {
    out.findings.push_back({finding.severity, finding.name(), finding.offset, finding.sentence});
  }
  out.errors = report.findings.errors();
  out.warnings = report.findings.warnings();
  out.notes = report.findings.notes();
  return out;
}

// ---- recover

Result<std::vector<std::string>> recover_dial9(Bytes file, ByteSink& out, const BytesDone& done) {
  const auto copied = dial9::copy_frames(file, out, done);
  if (!copied.ok()) return copied.error();
  if (done) done(file.size());
  std::vector<std::string> missing;
  if (!copied->problem) return missing;
  missing.push_back(fmt::format("the last {} bytes, from offset {}: {}",
                                file.size() - copied->bytes, copied->bytes,
                                copied->problem->sentence));
  if (copied->next_header) {
    missing.push_back(
        fmt::format("what looks like another stream, from offset {}, is among them: frames have no "
                    "lengths, so nothing tells a header from a value that looks like one",
                    *copied->next_header));
  }
  return missing;
}

}  // namespace

const CaptureFormat kDial9Capture{"dial9", "dial9 stream", check_dial9, dump_dial9, recover_dial9};

}  // namespace collect::ctl
