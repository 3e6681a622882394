// RTC containers: any application's, and our own sessions in them.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "daemon/ctl/captures/capture_format.h"
#include "formats/core/text/figures.h"
#include "formats/rtc/check.h"
#include "formats/rtc/copy.h"
#include "formats/rtc/read/reader.h"

namespace collect::ctl {
namespace {

// Shown of an object whose format can't be shown.
constexpr size_t kRtcShownBytes = 32;
constexpr size_t kRtcShownText = 200;

std::string seconds_text(int64_t ns) {
  const bool negative = ns < 0;
  const uint64_t amount = negative ? 0 - static_cast<uint64_t>(ns) : static_cast<uint64_t>(ns);
  std::string digits = std::to_string(amount % 1'000'000'000);
  digits.insert(0, 9 - digits.size(), '0');
  return fmt::format("{}{}.{} s", negative ? "-" : "", amount / 1'000'000'000, digits);
}

CaptureGrade grade_of(const rtc::Summary& summary) {
  if (summary.findings.errors() != 0) return CaptureGrade::kDamaged;
  const bool finished = !summary.units.empty() && summary.units.back().crc != rtc::CrcState::kNone;
  return finished && summary.head_bytes == 0 && summary.tail_bytes == 0 ? CaptureGrade::kOk
                                                                        : CaptureGrade::kRecovered;
}

std::string crc_text(const rtc::Summary& summary) {
  std::string text;
  for (const rtc::CrcState state :
       {rtc::CrcState::kIeee, rtc::CrcState::kPublished, rtc::CrcState::kMismatch,
        rtc::CrcState::kNone, rtc::CrcState::kUnchecked}) {
    const uint64_t units = summary.units_with(state);
    if (units == 0) continue;
    if (!text.empty()) text += ", ";
    text += fmt::format("{} {}", units, rtc::to_text(state));
  }
  return text.empty() ? "none" : text;
}

void describe(const rtc::Summary& summary, CaptureReport& report) {
  auto& facts = report.facts;
  facts.emplace_back("units", fmt::format("{} of {}, minor units of {}", summary.units.size(),
                                          short_bytes(summary.geometry.unit_bytes),
                                          short_bytes(summary.geometry.minor_bytes)));
  facts.emplace_back("checksums", crc_text(summary));
  facts.emplace_back("byte order", rtc::to_text(summary.endian));
  if (summary.first_time_ns) {
    facts.emplace_back("time", fmt::format("{} to {}", seconds_text(*summary.first_time_ns),
                                           seconds_text(*summary.last_time_ns)));
  }
  if (summary.head_bytes + summary.tail_bytes + summary.skipped_bytes != 0) {
    facts.emplace_back("not read",
                       fmt::format("{} bytes at the front, {} between, {} at the end",
                                   summary.head_bytes, summary.skipped_bytes, summary.tail_bytes));
  }
  std::string label = "streams";
  for (const rtc::StreamSummary& stream : summary.streams) {
    std::string text = fmt::format("{} ({}): {}, {}", stream.info.label(), stream.info.format.text,
                                   counted(stream.objects, "object"), short_bytes(stream.bytes));
    if (stream.incomplete != 0) text += fmt::format(", {} cut off", stream.incomplete);
    facts.emplace_back(std::exchange(label, ""), std::move(text));
  }
}

Json json_of(const rtc::Summary& summary) {
  Json json{{"units", summary.units.size()},
            {"unit_bytes", summary.geometry.unit_bytes},
            {"minor_bytes", summary.geometry.minor_bytes},
            {"special_frames", rtc::to_text(summary.special)},
            {"endian", rtc::to_text(summary.endian)},
            {"bytes", summary.bytes},
            {"frames", summary.frames},
            {"objects", summary.objects},
            {"head_bytes", summary.head_bytes},
            {"tail_bytes", summary.tail_bytes},
            {"skipped_bytes", summary.skipped_bytes}};
  if (summary.first_time_ns) {
    json["time_start_ns"] = *summary.first_time_ns;
    json["time_end_ns"] = *summary.last_time_ns;
  }
  json["streams"] = Json::array();
  for (const rtc::StreamSummary& stream : summary.streams) {
    json["streams"].push_back({{"name", stream.info.label()},
                               {"format", stream.info.format.text},
                               {"objects", stream.objects},
                               {"bytes", stream.bytes},
                               {"incomplete", stream.incomplete}});
  }
  return json;
}

// Reports how far the reader is, by the Units it leaves behind.
class UnitProgress final : public rtc::ReaderObserver {
 public:
  explicit UnitProgress(const BytesDone& done) : steps_(done) {}
  void unit_ended(const rtc::UnitInfo& unit) override { steps_.at(unit.offset); }

 private:
  DoneSteps steps_;
};

CaptureReport check_rtc(Bytes file, const BytesDone& done) {
  CaptureReport report;
  UnitProgress progress(done);
  rtc::ReaderOptions options;
  options.observer = &progress;
  const Result<rtc::Summary> summary = rtc::check_file(file, options);
  if (done) done(file.size());
  if (!summary.ok()) {
    report.grade = CaptureGrade::kRejected;
    report.errors = 1;
    report.findings.push_back({Severity::kError, "head", 0, summary.error().message});
    return report;
  }
  report.grade = grade_of(*summary);
  report.counts = fmt::format("{} units, {} streams, {} objects", summary->units.size(),
                              summary->streams.size(), summary->objects);
  report.json = json_of(*summary);
  if (summary->first_time_ns) {
    report.first_ns = static_cast<uint64_t>(std::max<int64_t>(*summary->first_time_ns, 0));
  }
  describe(*summary, report);
  for (const rtc::Finding& finding : summary->findings.list()) {
    report.findings.push_back(
        {finding.severity, rtc::rule_name(finding.rule), finding.offset, finding.sentence});
  }
  report.errors = summary->findings.errors();
  report.warnings = summary->findings.warnings();
  report.notes = summary->findings.notes();
  return report;
}

// ---- dump

class ObjectPrinter {
 public:
  ObjectPrinter(const rtc::Reader& reader, TextOut& out) : reader_(reader), out_(out) {}

  void print_text(const rtc::Object& object) {
    if (object.time_ns) {
      out_.put(seconds_text(*object.time_ns));
    } else {
      out_.put("-");
    }
    out_.put("  ");
    out_.printable(object.stream->label());
    out_.put("  ");
    const Result<rtc::Value> value = reader_.value(object);
    if (value.ok() && value->number) {
      out_.put(number_text(*value));
    } else if (value.ok() && std::holds_alternative<std::string_view>(value->raw)) {
      const auto text = std::get<std::string_view>(value->raw);
      out_.printable(text, kRtcShownText);
    } else {
      const Bytes bytes = object.payload();
      out_.dec(bytes.size());
      out_.put(bytes.empty() ? " bytes" : " bytes ");
      out_.hex_bytes(bytes.first(std::min(kRtcShownBytes, bytes.size())));
      if (bytes.size() > kRtcShownBytes) out_.put("…");
    }
    if (object.possibly_incomplete) out_.put("  (possibly only its end)");
    out_.put('\n');
  }

  void print_json(const rtc::Object& object) {
    out_.put(kJsonLineStart);
    out_.put("\"offset\":");
    out_.dec(object.offset);
    out_.put(",\"stream\":");
    out_.json_string(object.stream->label());
    out_.put(",\"format\":");
    out_.json_string(object.stream->format.text);
    if (object.time_ns) {
      out_.put(",\"time_ns\":");
      out_.put(std::to_string(*object.time_ns));
    }
    if (object.possibly_incomplete) out_.put(",\"possibly_incomplete\":true");
    const Result<rtc::Value> value = reader_.value(object);
    if (value.ok() && value->number) {
      if (const std::string number = number_text(*value); number != kNoNumber) {
        out_.put(",\"value\":");
        out_.put(number);
      }
    } else if (value.ok() && std::holds_alternative<std::string_view>(value->raw)) {
      out_.put(",\"text\":");
      out_.json_string(std::get<std::string_view>(value->raw));
    } else {
      out_.put(",\"hex\":\"");
      for (const Bytes part : object.fragments()) out_.hex_bytes(part);
      out_.put('"');
    }
    out_.put("}\n");
  }

 private:
  static constexpr char kNoNumber[] = "null";  // which JSON leaves out

  // Integers without gain and offset keep all their digits.
  static std::string number_text(const rtc::Value& value) {
    if (!value.has_gain_or_offset) {
      if (const auto* whole = std::get_if<uint64_t>(&value.raw)) return std::to_string(*whole);
      if (const auto* whole = std::get_if<int64_t>(&value.raw)) return std::to_string(*whole);
    }
    if (!std::isfinite(*value.number)) return kNoNumber;
    return real_text(*value.number);
  }

  const rtc::Reader& reader_;
  TextOut& out_;
};

Status dump_rtc(const DumpOptions& options, const calls::Window& window, Bytes file, TextOut& out,
                const BytesDone& done) {
  if (!options.threads.empty() || !options.functions.empty() || options.merged || options.detail) {
    return Error{Code::kInvalidArgument,
                 "an RTC container has streams, not threads and functions; collectctl convert "
                 "--to atf makes a session of one that collectord wrote"};
  }
  auto reader = rtc::Reader::open(file);
  if (!reader.ok()) return reader.error();
  if (window.first_ns != 0) {
    const auto moved = reader->seek_time(static_cast<int64_t>(window.first_ns));
    if (!moved.ok()) return Error{Code::kInvalidArgument, moved.error().message};
  }
  ObjectPrinter printer(*reader, out);
  rtc::Object object;
  uint64_t printed = 0;
  DoneSteps steps(done);
  while (printed < options.limit && out.ok() && reader->next(object)) {
    steps.at(object.offset);
    const bool timed = object.time_ns.has_value();
    if (timed && *object.time_ns < static_cast<int64_t>(std::min<uint64_t>(
                                       window.first_ns, std::numeric_limits<int64_t>::max()))) {
      continue;
    }
    if (timed && *object.time_ns > 0 && static_cast<uint64_t>(*object.time_ns) > window.last_ns) {
      break;
    }
    if (options.json) {
      printer.print_json(object);
    } else {
      printer.print_text(object);
    }
    ++printed;
  }
  if (reader->findings().errors() == 0) return {};
  return Error{Code::kDamaged, fmt::format("{} errors on the way; collectctl verify lists them",
                                           reader->findings().errors())};
}

// ---- recover

Result<std::vector<std::string>> recover_rtc(Bytes file, ByteSink& out, const BytesDone& done) {
  auto copied = rtc::copy_objects({&file, 1}, out, done);
  if (!copied.ok()) return copied.error();
  std::vector<std::string> said = std::move(copied->changes);
  for (const rtc::Finding& finding : copied->findings.list()) {
    if (finding.severity != Severity::kError) continue;
    said.push_back(fmt::format("at {}: {}", finding.offset, finding.sentence));
  }
  for (const auto& [count, what] : rtc::missing_counts(*copied)) {
    said.push_back(fmt::format("{} {}", with_thousands(count), what));
  }
  return said;
}

}  // namespace

const CaptureFormat kRtcCapture{"rtc", "RTC container", check_rtc, dump_rtc, recover_rtc};

}  // namespace collect::ctl
