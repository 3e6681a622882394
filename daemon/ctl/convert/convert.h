// `collectctl convert INPUT… --to FORMAT -o OUTPUT`: any capture into any format. Between two
// formats it goes through an ATF session: it is what all others can be made from and into; where
// neither is ATF, one is built beside the output and removed again. Within one format nothing is
// lost. Streams: memory does not grow with the
// capture. What the target cannot express is counted and said.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/ctl/session_files.h"
#include "formats/core/result.h"
#include "formats/wtf/json.h"

namespace collect::ctl {

class SessionBuilder;

enum class Target : uint8_t { kAtf, kRtc, kWtf, kWtfJson, kDial9 };

struct ConvertOptions {
  std::vector<std::string> inputs;  // several only where they are one capture: RTC containers
  Target to{};
  std::string output;  // a file, or for ATF the directory that the session is made in
  uint8_t atf_version = 2;
  // Of wtf-json. By default what the published viewer loads with all its events.
  wtf::JsonOptions wtf_json = {wtf::JsonMode::kComplete, wtf::JsonEvents::kBase64};
  bool force = false;     // replace the output
  bool json = false;      // the report as one JSON document
  bool progress = false;  // `err` is a terminal
};

// 0: converted, nothing left out. 1: converted, but something was left out or the input is damaged:
// said on `err`, counted in the report. 2: nothing was made.
int convert(const ConvertOptions& options, std::ostream& out, std::ostream& err);

// Where an output goes: there is room for temporary files that are as large.
std::string directory_of(const std::string& output);

// What happens on the way: how far it is, and what the target cannot express.
class ConvertLog {
 public:
  explicit ConvertLog(std::function<void(uint64_t done, uint64_t all)> progress = {})
      : progress_(std::move(progress)) {}

  // "detail records: a WTF-trace has no place for registers", so many times.
  void leave_out(std::string_view what, uint64_t count = 1) {
    if (count != 0) left_out_[std::string(what)] += count;
  }
  // Something about the input that the reader of the output should know.
  void say(std::string sentence) {
    if (said_.size() < kMaxSaid) {
      said_.push_back(std::move(sentence));
    } else {
      ++unsaid_;
    }
  }
  void progress(uint64_t done, uint64_t all) const {
    if (progress_) progress_(done, all);
  }
  // Bytes written, files made: for the last line.
  void wrote(std::string path, uint64_t bytes) { written_.emplace_back(std::move(path), bytes); }
  void count(std::string_view what, uint64_t number) { counts_[std::string(what)] += number; }

  const std::map<std::string, uint64_t>& left_out() const { return left_out_; }
  const std::map<std::string, uint64_t>& counts() const { return counts_; }
  const std::vector<std::string>& said() const { return said_; }
  uint64_t unsaid() const { return unsaid_; }
  const std::vector<std::pair<std::string, uint64_t>>& written() const { return written_; }

  static constexpr size_t kMaxSaid = 100;

 private:
  std::function<void(uint64_t, uint64_t)> progress_;
  std::map<std::string, uint64_t> left_out_;
  std::map<std::string, uint64_t> counts_;
  std::vector<std::string> said_;
  uint64_t unsaid_ = 0;
  std::vector<std::pair<std::string, uint64_t>> written_;
};

// From an ATF session into `output`. A format whose files end early by their own rules makes more
// of them: "trace.wtf-trace", "trace.2.wtf-trace", …
Status atf_to_rtc(const Trace& trace, const std::string& output, ConvertLog& log);
Status atf_to_wtf(const Trace& trace, const std::string& output, ConvertLog& log);
Status atf_to_dial9(const Trace& trace, const std::string& output, ConvertLog& log);

// Within one format, without a session in between: everything is kept (same_format.cc).
Status wtf_to_wtf(const ConvertOptions& options, Bytes file, ConvertLog& log);
Status dial9_to_dial9(const ConvertOptions& options, Bytes file, ConvertLog& log);

// Into an ATF session.
Status wtf_to_atf(Bytes file, SessionBuilder& session, ConvertLog& log);
Status dial9_to_atf(Bytes file, SessionBuilder& session, ConvertLog& log);

}  // namespace collect::ctl
