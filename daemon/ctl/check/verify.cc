#include "daemon/ctl/check/verify.h"

#include <ostream>

#include "daemon/ctl/captures/capture_format.h"
#include "daemon/ctl/check/trace_check.h"
#include "daemon/ctl/terminal/json.h"
#include "daemon/ctl/terminal/text_out.h"
#include "storage/read/capture_kind.h"

namespace collect::ctl {
namespace {

const std::string& path_of(const read::TraceThread& thread, Lane lane) {
  return lane == Lane::kIndex ? thread.index_path : thread.detail_path;
}

class VerifyPrinter {
 public:
  VerifyPrinter(const VerifyOptions& options, const read::Trace& trace, const TraceReport& report,
                std::ostream& out)
      : options_(options), trace_(trace), report_(report), out_(out) {}

  int print() {
    const bool bad = report_.grade != atf::Grade::kOk && report_.grade != atf::Grade::kRecovered;
    const uint64_t lesser = report_.count(Severity::kWarning) + report_.count(Severity::kNote);
    const bool incomplete = !report_.is_complete() && !options_.allow_incomplete;
    const bool failed = bad || incomplete || (options_.strict && lesser != 0);
    if (options_.json) {
      print_json(failed);
    } else {
      print_text(failed);
    }
    return failed ? 1 : 0;
  }

 private:
  const std::string& file_of(const ManifestFinding& finding) const {
    return finding.path.empty() ? trace_.manifest_path : finding.path;
  }
  // Notes say that something is unusual, not that it is wrong.
  bool shown(Severity severity) const { return options_.strict || severity != Severity::kNote; }

  void print_text(bool failed) {
    for (const ManifestFinding& finding : report_.manifest_findings) {
      if (!shown(finding.severity)) continue;
      out_.printable(file_of(finding));
      out_.put(": ");
      if (!finding.place.empty()) {
        out_.printable(finding.place);
        out_.put(": ");
      }
      print_sentence(finding.severity, finding.sentence);
    }
    for (size_t i = 0; i < report_.threads.size(); ++i) {
      const atf::Findings& findings = report_.threads[i].findings;
      for (const atf::Finding& finding : findings.list()) {
        if (!shown(finding.severity)) continue;
        out_.printable(path_of(trace_.threads[i], finding.lane));
        out_.put(": offset ");
        out_.dec(finding.offset);
        out_.put(": ");
        print_sentence(finding.severity, finding.sentence);
      }
      if (findings.unlisted() == 0) continue;
      out_.printable(trace_.threads[i].index_path);
      out_.put(": and ");
      out_.dec(findings.unlisted());
      out_.put(" findings more\n");
    }
    print_missing();
    if (!failed) print_summary();
  }

  void print_missing() {
    const auto& health = report_.health;
    if (health && !health->is_complete()) {
      out_.printable(trace_.path);
      out_.put(": ");
      out_.put(storage::session_state_name(health->state));
      out_.put(": ");
      out_.sentence(health->missing);
      out_.put('\n');
    } else if (report_.grade == atf::Grade::kRecovered) {
      out_.printable(trace_.path);
      out_.put(": recovered: was never finalized\n");
    }
  }

  void print_sentence(Severity severity, std::string_view sentence) {
    if (severity != Severity::kError) {
      out_.put(severity_name(severity));
      out_.put(": ");
    }
    out_.sentence(sentence);
    out_.put('\n');
  }

  void print_summary() {
    if (options_.color) out_.control("\x1b[32m");
    out_.put(report_.result());
    if (options_.color) out_.control("\x1b[0m");
    out_.put(": ");
    out_.printable(trace_.path);
    out_.put(": ");
    out_.count(report_.threads.size(), "thread");
    out_.put(", ");
    out_.count(report_.events(), "event");
    out_.put(", ");
    out_.count(report_.detail_records(), "detail");
    out_.put(", ");
    out_.dec(report_.lost_events());
    out_.put(report_.health && report_.health->losses_known ? " lost" : " known to be lost");
    if (report_.count(Severity::kWarning) != 0) {
      out_.put(", ");
      out_.count(report_.count(Severity::kWarning), "warning");
    }
    out_.put('\n');
  }

  void print_json(bool failed) {
    Json json = json_document();
    json["path"] = trace_.path;
    json["result"] = report_.result();
    json["ok"] = !failed;
    if (report_.health) {
      json["losses_known"] = report_.health->losses_known;
      add_text(json, "missing", report_.health->missing);
    }
    json["threads"] = report_.threads.size();
    json["events"] = report_.events();
    json["detail_records"] = report_.detail_records();
    json["lost_events"] = report_.lost_events();
    json["errors"] = report_.count(Severity::kError);
    json["warnings"] = report_.count(Severity::kWarning);
    json["notes"] = report_.count(Severity::kNote);
    Json& findings = json["findings"] = Json::array();
    const auto add = [&](const std::string& path, Json place, Severity severity,
                         std::string_view check, std::string_view sentence) {
      Json finding{{"path", path}};
      finding.update(place);
      finding["severity"] = severity_name(severity);
      finding["check"] = check;
      finding["sentence"] = sentence;
      findings.push_back(std::move(finding));
    };
    for (const ManifestFinding& finding : report_.manifest_findings) {
      add(file_of(finding), {{"pointer", finding.place}}, finding.severity,
          finding.path.empty() ? "manifest" : "lod", finding.sentence);
    }
    for (size_t i = 0; i < report_.threads.size(); ++i) {
      for (const atf::Finding& finding : report_.threads[i].findings.list()) {
        add(path_of(trace_.threads[i], finding.lane), {{"offset", finding.offset}},
            finding.severity, atf::check_name(finding.check), finding.sentence);
      }
    }
    out_.put(json_line(json));
  }

  const VerifyOptions& options_;
  const read::Trace& trace_;
  const TraceReport& report_;
  TextOut out_;
};

}  // namespace

int verify(const VerifyOptions& options, std::ostream& out, std::ostream& err) {
  const Answer answer{options.json, out, err};
  auto trace = read::open_trace(options.path);
  if (!trace) {
    return answer.refuse(trace.error(), 2);
  }
  if (!trace->choice.empty()) err << "collectctl: " << printable_sentence(trace->choice) << "\n";
  if (trace->kind == read::TraceKind::kUnknownFile) {
    if (const CaptureFormat* format = capture_format_of(trace->file())) {
      return verify_capture(*format, options, *trace, out, err);
    }
    return answer.refuse(read::not_a_capture(trace->path, trace->file()), 2);
  }
  const TraceReport report = check_trace(*trace, progress_line(err, options.progress));
  return VerifyPrinter(options, *trace, report, out).print();
}

}  // namespace collect::ctl
