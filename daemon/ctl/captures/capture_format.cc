#include "daemon/ctl/captures/capture_format.h"

#include <fmt/core.h>

#include <algorithm>
#include <ostream>

#include "daemon/ctl/terminal/terminal.h"
#include "formats/core/text/figures.h"
#include "storage/read/capture_kind.h"

namespace collect::ctl {
namespace {

// How far a large file is read, on a terminal.
BytesDone bytes_line(std::ostream& err, bool wanted, uint64_t all, const char* doing) {
  if (!wanted || all < 2 * DoneSteps::kStep) return {};
  return [line = percent_line(err, true, doing), all](uint64_t done) { line(done, all); };
}

void print_finding(TextOut& out, const std::string& path, const CaptureFinding& finding) {
  out.printable(path);
  out.put(": offset ");
  out.dec(finding.offset);
  out.put(": ");
  if (finding.severity != Severity::kError) {
    out.put(severity_name(finding.severity));
    out.put(": ");
  }
  out.sentence(finding.sentence);
  out.put('\n');
}

// What its format says of the file, and what a gzip file lacks of it.
CaptureReport check(const CaptureFormat& format, const read::Trace& trace, const BytesDone& done) {
  CaptureReport report = format.check(trace.file(), done);
  for (const std::string& sentence : trace.unopened()) {
    report.findings.push_back({Severity::kError, "gzip", 0, sentence});
    ++report.errors;
    if (report.grade != CaptureGrade::kRejected) report.grade = CaptureGrade::kDamaged;
  }
  return report;
}

Json json_head(const CaptureFormat& format, const std::string& path, const CaptureReport& report) {
  Json json = json_document();
  json["path"] = path;
  json["format"] = format.name;
  json["result"] = to_text(report.grade);
  json["errors"] = report.errors;
  json["warnings"] = report.warnings;
  json["notes"] = report.notes;
  return json;
}

}  // namespace

std::string_view severity_name(Severity severity) {
  switch (severity) {
    case Severity::kNote:
      return "note";
    case Severity::kWarning:
      return "warning";
    case Severity::kError:
      break;
  }
  return "error";
}

std::string_view to_text(CaptureGrade grade) {
  switch (grade) {
    case CaptureGrade::kOk:
      return "ok";
    case CaptureGrade::kRecovered:
      return "recovered";
    case CaptureGrade::kDamaged:
      return "damaged";
    case CaptureGrade::kRejected:
      break;
  }
  return "rejected";
}

const CaptureFormat* capture_format_of(Bytes file) {
  const auto kind = read::capture_kind_of(file);
  if (!kind) return nullptr;
  switch (*kind) {
    case read::CaptureKind::kRtc:
      return &kRtcCapture;
    case read::CaptureKind::kWtf:
    case read::CaptureKind::kWtfJson:
      return &kWtfCapture;
    case read::CaptureKind::kDial9:
      return &kDial9Capture;
    default:
      break;
  }
  return nullptr;
}

int inspect_capture(const CaptureFormat& format, const InspectOptions& options,
                    const read::Trace& trace, std::ostream& out, std::ostream& err) {
  const std::string& path = trace.path;
  const Bytes file = trace.file();
  const CaptureReport report =
      check(format, trace, bytes_line(err, options.progress, file.size(), "checking"));
  TextOut text(out);
  if (options.json) {
    Json document = json_head(format, path, report);
    if (!report.json.is_null()) document.update(report.json);
    text.put(json_line(document));
    return report.grade == CaptureGrade::kRejected ? 1 : 0;
  }
  size_t width = 8;
  for (const auto& [label, what] : report.facts) width = std::max(width, label.size());
  const auto line = [&](std::string_view label, std::string_view what) {
    text.put("  ");
    text.put(label);
    text.repeat(' ', width - std::min(width, label.size()) + 2);
    text.sentence(what);
    text.put('\n');
  };
  text.printable(path);
  text.put('\n');
  line("format", format.title);
  line("result", to_text(report.grade));
  line("size", short_bytes(file.size()));
  for (const auto& [label, what] : report.facts) line(label, what);
  if (report.errors + report.warnings != 0) {
    line("findings",
         fmt::format("{}, {} (collectctl verify lists them)", counted(report.errors, "error"),
                     counted(report.warnings, "warning")));
  }
  return report.grade == CaptureGrade::kRejected ? 1 : 0;
}

int verify_capture(const CaptureFormat& format, const VerifyOptions& options,
                   const read::Trace& trace, std::ostream& out, std::ostream& err) {
  const std::string& path = trace.path;
  const CaptureReport report =
      check(format, trace, bytes_line(err, options.progress, trace.file().size(), "checking"));
  const bool is_sound = report.grade == CaptureGrade::kOk ||
                        (report.grade == CaptureGrade::kRecovered && options.allow_incomplete);
  const bool strictly = report.grade == CaptureGrade::kOk && report.warnings + report.notes == 0;
  const bool failed = !is_sound || report.errors != 0 || (options.strict && !strictly);
  TextOut text(out);
  if (options.json) {
    Json document = json_head(format, path, report);
    document["ok"] = !failed;
    document["findings"] = Json::array();
    for (const CaptureFinding& finding : report.findings) {
      document["findings"].push_back({{"offset", finding.offset},
                                      {"severity", severity_name(finding.severity)},
                                      {"check", finding.check},
                                      {"sentence", finding.sentence}});
    }
    text.put(json_line(document));
    return failed ? 1 : 0;
  }
  for (const CaptureFinding& finding : report.findings) {
    if (finding.severity == Severity::kNote && !options.strict) continue;
    print_finding(text, path, finding);
  }
  const auto listed = static_cast<uint64_t>(std::count_if(
      report.findings.begin(), report.findings.end(),
      [&](const auto& finding) { return options.strict || finding.severity != Severity::kNote; }));
  const uint64_t all = report.errors + report.warnings + (options.strict ? report.notes : 0);
  if (all > listed) {
    text.printable(path);
    text.put(": ");
    text.dec(all - listed);
    text.put(" more findings are not listed\n");
  }
  if (failed && all == 0) {
    text.printable(path);
    text.put(": ");
    text.put(to_text(report.grade));
    text.put('\n');
  }
  if (!failed) {
    text.put(to_text(report.grade));
    text.put(": ");
    text.printable(path);
    text.put(": ");
    text.put(format.title);
    text.put(", ");
    text.sentence(report.counts);
    text.put('\n');
  }
  return failed ? 1 : 0;
}

int dump_capture(const CaptureFormat& format, const DumpOptions& options, const std::string& path,
                 Bytes file, std::ostream& out, std::ostream& err) {
  const Answer answer{options.json, out, err};
  // When it begins is known to who has read it all.
  const auto window = select::window_of(options.when, [&] {
    select::SessionTimes times;
    const bool is_number =
        (options.when.from + options.when.until).find_first_not_of("0123456789") ==
        std::string::npos;
    if (!is_number) {
      const BytesDone done = bytes_line(err, options.progress, file.size(), "checking");
      times.start_ns = format.check(file, done).first_ns.value_or(0);
    }
    return times;
  });
  if (!window.ok()) {
    return answer.refuse_briefly(
        {window.code(), fmt::format("{}: {}", path, window.error().message)}, 2);
  }
  TextOut text(out);
  const BytesDone done = bytes_line(err, options.progress, file.size(), "printing");
  const Status dumped = format.dump(options, *window, file, text, done);
  text.flush();
  if (done) done(file.size());
  if (dumped.ok() || !text.ok()) return 0;
  return answer.refuse_briefly({dumped.code(), fmt::format("{}: {}", path, dumped.error().message)},
                               dumped.code() == Code::kInvalidArgument ? 2 : 1);
}

}  // namespace collect::ctl
