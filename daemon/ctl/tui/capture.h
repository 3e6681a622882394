// One capture, or one thread of it, as `report --tui` shows it: what report works out, each when it
// is first asked for.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "daemon/ctl/report/report_profile.h"
#include "daemon/ctl/tui/call_graph.h"
#include "formats/html/writer.h"

namespace collect::ctl::tui {

// A caller of a function, or what it called.
struct Neighbour {
  std::string name;
  uint64_t function = 0;  // FunctionSlots::kOther: none that can be opened
  calls::GroupTimes times;
};

struct ThreadOfCapture {
  uint32_t n = 0;  // of thread_N
  uint32_t thread_id = 0;
  uint64_t events = 0;
  std::string name;
};

// Stays where it is. One thread.
class Capture {
 public:
  // Called before what may take long.
  using Busy = std::function<void(const std::string& what)>;

  // `shown_path`: of the capture that the one which is opened was made of; empty: none.
  explicit Capture(Busy busy, std::string shown_path = {})
      : busy_(std::move(busy)), shown_path_(std::move(shown_path)) {}
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  // Reads the functions. 0, or the exit code when nothing can be shown; what is wrong is reported
  // by `answer`.
  int open(const ReportOptions& options, const Answer& answer);
  const ReportedCapture& reported() const { return reported_; }
  const std::string& path() const {
    return shown_path_.empty() ? reported_.trace().path : shown_path_;
  }
  const std::string& shown_path() const { return shown_path_; }
  const ReportOptions& options() const { return options_; }
  const Busy& busy() const { return busy_; }
  const ReportProfile& functions() const { return functions_; }
  const ReportRow* function(uint64_t id) const;    // null: it has no row
  uint64_t start_ns() const { return start_ns_; }  // of its first event
  std::vector<ThreadOfCapture> threads() const;

  // The longest first. Those of a function add up to its total.
  std::vector<Neighbour> callers_of(uint64_t function);
  std::vector<Neighbour> callees_of(uint64_t function);
  const CallGraph& graph();
  // Of all functions of this name.
  Result<html::FunctionCalls> slowest_calls(const std::string& name);

 private:
  const std::vector<ReportRow>& pairs();

  Busy busy_;
  std::string shown_path_;
  ReportOptions options_;
  ReportedCapture reported_;
  ReportProfile functions_;
  std::unordered_map<uint64_t, size_t> rows_;  // function -> place in functions_
  std::optional<std::vector<ReportRow>> pairs_;
  std::unique_ptr<CallGraph> graph_;
  uint64_t start_ns_ = 0;
};

}  // namespace collect::ctl::tui
