#include "daemon/ctl/tui/capture.h"

#include <sstream>
#include <utility>

#include "daemon/ctl/report/report_graph.h"
#include "storage/export/page/function_calls.h"
#include "storage/select/time_window.h"

namespace collect::ctl::tui {

int Capture::open(const ReportOptions& options, const Answer& answer) {
  options_ = options;
  options_.by = ReportBy::kFunction;
  if (const int code = reported_.open(options_.path, options_, answer); code != 0) return code;
  busy_("adding up the calls …");
  functions_ = profile_of(reported_, options_, answer.err);
  for (size_t i = 0; i < functions_.rows.size(); ++i) rows_.emplace(functions_.rows[i].id, i);
  start_ns_ = select::session_times(reported_.reader(), std::nullopt).start_ns;
  return 0;
}

const ReportRow* Capture::function(uint64_t id) const {
  const auto found = rows_.find(id);
  return found == rows_.end() ? nullptr : &functions_.rows[found->second];
}

std::vector<ThreadOfCapture> Capture::threads() const {
  std::vector<ThreadOfCapture> all;
  for (const atf::SessionThread* thread : reported_.threads()) {
    all.push_back({thread->n, report_thread_id(reported_, *thread), thread->index->size(),
                   report_thread_name(reported_, thread->n)});
  }
  return all;
}

const std::vector<ReportRow>& Capture::pairs() {
  if (pairs_) return *pairs_;
  busy_("reading who called what …");
  ReportOptions options = options_;
  options.by = ReportBy::kCaller;
  options.sort = ReportSort::kTotal;
  options.progress = false;
  std::ostringstream ignored;
  pairs_ = profile_of(reported_, options, ignored).rows;
  return *pairs_;
}

std::vector<Neighbour> Capture::callers_of(uint64_t function) {
  std::vector<Neighbour> callers;
  for (const ReportRow& pair : pairs()) {
    if (pair.id == function) callers.push_back({pair.caller, pair.caller_id, pair.times});
  }
  return callers;
}

std::vector<Neighbour> Capture::callees_of(uint64_t function) {
  std::vector<Neighbour> callees;
  // The callers that are no function have this id, too.
  if (function == calls::FunctionSlots::kOther) return callees;
  for (const ReportRow& pair : pairs()) {
    if (pair.caller_id == function) callees.push_back({pair.name, pair.id, pair.times});
  }
  return callees;
}

const CallGraph& Capture::graph() {
  if (!graph_) {
    busy_("reading the call graph …");
    graph_ = std::make_unique<CallGraph>(read_call_tree(reported_, [](size_t, size_t) {}),
                                         reported_.names());
  }
  return *graph_;
}

Result<html::FunctionCalls> Capture::slowest_calls(const std::string& name) {
  busy_("looking for the slowest calls …");
  exports::ExportSelection selection;
  selection.when = options_.when;
  selection.threads = options_.threads;
  auto session = exports::ExportedSession::open(reported_.trace(), selection);
  if (!session.ok()) return session.error();
  exports::ExportedSessions sessions;
  sessions.push_back(std::move(*session));
  sessions.front()->choose_window(reported_.window());
  convert::ConvertLog log;
  return exports::find_function_calls(sessions, name, log);
}

}  // namespace collect::ctl::tui
