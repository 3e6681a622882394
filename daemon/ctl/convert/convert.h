// `collectctl convert INPUT… --to FORMAT -o OUTPUT`: any capture into any format. Between two
// formats it goes through an ATF session: it is what all others can be made from and into; where
// neither is ATF, one is built beside the output and removed again. Within one format nothing is
// lost. Streams: memory does not grow with the capture. What is missing from the input and what the
// target has no place for are told apart (convert_log.h).
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "daemon/ctl/convert/convert_log.h"
#include "daemon/ctl/export/exported_session.h"
#include "daemon/ctl/session_files.h"
#include "formats/core/byte_sink.h"
#include "formats/core/result.h"
#include "formats/wtf/json.h"

namespace collect::ctl {

class SessionBuilder;

// From kPerfetto on: formats of viewers, which are written only (export/export.h).
enum class Target : uint8_t {
  kAtf,
  kRtc,
  kWtf,
  kWtfJson,
  kDial9,
  kPerfetto,
  kChrome,
  kSpeedscope,
  kFolded,
  kPprof,
  kHtml
};
constexpr bool is_view(Target target) {
  return target >= Target::kPerfetto;
}

struct ConvertOptions {
  // Several where they are one capture, RTC containers; for views also several captures, which lie
  // on one time line then.
  std::vector<std::string> inputs;
  Target to{};
  std::string output;  // a file, or for ATF the directory that the session is made in
  std::optional<uint8_t> atf_version;  // of kAtf; absent: the input's, or 2
  // Of wtf-json. By default what the published viewer loads with all its events.
  wtf::JsonOptions wtf_json = {wtf::JsonMode::kComplete, wtf::JsonEvents::kBase64};
  ExportSelection selection;             // of views
  bool look_names_up = false;            // of sessions that are not sealed (running_names.h)
  bool force = false;                    // replace the output
  bool strict = false;                   // exit code 1 also for what the target has no place for
  std::string_view command = "convert";  // whose errors are said
  bool json = false;                     // the report as one JSON document
  bool progress = false;                 // `err` is a terminal
};

// 0: converted; what the target has no place for is one line on `err`. 1: converted, but something
// is missing from the input: said on `err`, counted in the report and in the new manifest; or, when
// strict, something was left out. 2: nothing was made.
int convert(const ConvertOptions& options, std::ostream& out, std::ostream& err);

// Where an output goes: there is room for temporary files that are as large.
std::string directory_of(const std::string& output);

// From an ATF session into `output`. A format whose files end early by their own rules makes more
// of them: "trace.wtf-trace", "trace.2.wtf-trace", …
Status atf_to_rtc(const Trace& trace, const std::string& output, ConvertLog& log);
// The container alone; how many events are in it. `directory` is for what has to be put in order.
Result<uint64_t> write_container(const Trace& trace, ByteSink& out, const std::string& directory,
                                 ConvertLog& log);
Status atf_to_wtf(const Trace& trace, const std::string& output, ConvertLog& log);
Status atf_to_dial9(const Trace& trace, const std::string& output, ConvertLog& log);

// Within one format, without a session in between: everything is kept (same_format.cc). A session
// into another one: a copy of every file, below `root`; where the copy is (copy_session.cc).
// Several in order, into one.
Result<std::string> copy_session(const Trace& trace, const std::string& root, ConvertLog& log);
Status rtc_to_rtc(const ConvertOptions& options, std::span<const Bytes> files, ConvertLog& log);
Status wtf_to_wtf(const ConvertOptions& options, Bytes file, ConvertLog& log);
Status dial9_to_dial9(const ConvertOptions& options, Bytes file, ConvertLog& log);

// Into an ATF session.
Status wtf_to_atf(Bytes file, SessionBuilder& session, ConvertLog& log);
Status dial9_to_atf(Bytes file, SessionBuilder& session, ConvertLog& log);

}  // namespace collect::ctl
