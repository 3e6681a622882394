// A capture into its own format, or into the other form of it: nothing goes through a session, so
// nothing is lost but what the input itself has lost.
#include "formats/dial9/copy.h"

#include <fmt/core.h>
#include "formats/rtc/copy.h"
#include "formats/wtf/layout.h"
#include "formats/wtf/transcode.h"
#include "storage/convert/conversions.h"
#include "storage/convert/wtf/wtf_binary.h"
#include "storage/fs/output_file.h"
#include "storage/read/unnamed_file.h"

namespace collect::convert {
namespace {

constexpr std::string_view kRenamed = "names of event types, changed to what the format can hold";

// A binary file of the present version, as it is where nothing is wrong with it.
Result<uint64_t> to_binary_form(const Options& options, Bytes file, ByteSink& out,
                                wtf::Findings& findings, ConvertLog& log) {
  const auto binary = WtfBinary::of(file, findings, directory_of(options.output));
  if (!binary.ok()) return binary.error();
  const Bytes bytes = binary->bytes();
  return wtf::rewrite(bytes, out, findings,
                      [&](uint64_t done) { log.progress(done, bytes.size()); });
}

Result<uint64_t> to_json_form(const Options& options, Bytes file, ByteSink& out,
                              wtf::Findings& findings, ConvertLog& log) {
  auto binary = read::UnnamedFile::create(directory_of(options.output));
  if (!binary.ok()) return binary.error();
  const auto events = to_binary_form(options, file, *binary, findings, log);
  if (!events.ok()) return events.error();
  const auto bytes = binary->bytes();
  if (!bytes.ok()) return bytes.error();
  const auto totals = wtf::binary_to_json(bytes->bytes(), options.wtf_json, out, findings);
  if (!totals.ok()) return totals.error();
  return events;
}

// What the input has lost is reported; what the format cannot hold is counted.
void note_findings(const wtf::Findings& findings, ConvertLog& log) {
  uint64_t listed = 0;
  for (const wtf::Finding& finding : findings.list()) {
    if (finding.rule == wtf::Rule::kRenamed) log.leave_out(kRenamed);
    if (finding.severity == Severity::kError) {
      ++listed;
      log.missing(fmt::format("at {}: {}", finding.offset, finding.sentence));
    }
  }
  if (findings.errors() > listed)
    log.missing("more findings like these", findings.errors() - listed);
}

}  // namespace

Status wtf_to_wtf(const Options& options, Bytes file, ConvertLog& log) {
  auto out = storage::OutputFile::create(options.output, options.force);
  if (!out.ok()) return out.error();
  wtf::Findings findings;
  const auto events = options.to == read::CaptureKind::kWtfJson
                          ? to_json_form(options, file, *out, findings, log)
                          : to_binary_form(options, file, *out, findings, log);
  if (!events.ok()) return events.error();
  log.count("events", *events);
  note_findings(findings, log);
  COLLECT_TRY(out->commit());
  log.wrote(options.output, out->size());
  return {};
}

Status rtc_to_rtc(const Options& options, std::span<const Bytes> files, ConvertLog& log) {
  auto out = storage::OutputFile::create(options.output, options.force);
  if (!out.ok()) return out.error();
  uint64_t all = 0;
  for (const Bytes file : files) all += file.size();
  const auto copied =
      rtc::copy_objects(files, *out, [&](uint64_t done) { log.progress(done, all); });
  if (!copied.ok()) return copied.error();
  log.count("objects", copied->objects);
  for (const std::string& sentence : copied->changes) log.remark(sentence);
  for (const rtc::Finding& finding : copied->findings.list()) {
    if (finding.severity != Severity::kError) continue;
    log.missing(fmt::format("at {}: {}", finding.offset, finding.sentence));
  }
  for (const auto& [count, what] : rtc::missing_counts(*copied)) log.missing(what, count);
  COLLECT_TRY(out->commit());
  log.wrote(options.output, out->size());
  return {};
}

Status dial9_to_dial9(const Options& options, Bytes file, ConvertLog& log) {
  auto out = storage::OutputFile::create(options.output, options.force);
  if (!out.ok()) return out.error();
  const auto copied =
      dial9::copy_frames(file, *out, [&](uint64_t done) { log.progress(done, file.size()); });
  if (!copied.ok()) return copied.error();
  log.count("events", copied->events);
  if (copied->problem) {
    log.missing("the stream breaks off: " + dial9::to_error(*copied->problem).message);
    log.missing("bytes behind the last whole frame", file.size() - copied->bytes);
  }
  COLLECT_TRY(out->commit());
  log.wrote(options.output, out->size());
  return {};
}

}  // namespace collect::convert
