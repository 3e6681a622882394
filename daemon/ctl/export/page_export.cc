#include "daemon/ctl/export/page_export.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

#include "daemon/ctl/export/function_names.h"
#include "daemon/ctl/figures.h"
#include "formats/calls/call_tree.h"
#include "formats/calls/function_totals.h"
#include "formats/calls/read_thread.h"
#include "formats/calls/sinks.h"
#include "formats/html/writer.h"

namespace collect::ctl {
namespace {

using calls::CallTree;

// What a thread did when: calls and ends in equal parts of the page's time, and losses.
class Activity : public calls::CallSink {
 public:
  Activity(const ExportedSession& session, const html::Page& page)
      : session_(session),
        first_ns_(page.first_ns),
        part_ns_((page.last_ns - page.first_ns) / kPageParts + 1),
        parts_(kPageParts) {}

  void on_call_begin(const calls::Call& call) { count(call.begin.ns); }
  void on_call_end(const calls::EndedCall& call) { count(call.end.ns); }
  void on_gap(const calls::Gap& gap, const calls::Moment& last) {
    const uint64_t first_ns = gap.first_ns != 0 ? gap.first_ns : last.ns;
    gaps_.emplace_back(session_.line_ns(first_ns),
                       session_.line_ns(std::max(first_ns, gap.last_ns)));
  }

  std::vector<uint32_t> take_parts() { return std::move(parts_); }
  std::vector<html::Interval> take_gaps() { return std::move(gaps_); }

 private:
  void count(uint64_t device_ns) {
    const uint64_t ns = std::max(session_.line_ns(device_ns), first_ns_);
    const uint64_t part = (ns - first_ns_) / part_ns_;
    ++parts_[std::min<uint64_t>(part, kPageParts - 1)];
  }

  const ExportedSession& session_;
  const uint64_t first_ns_;
  const uint64_t part_ns_;
  std::vector<uint32_t> parts_;
  std::vector<html::Interval> gaps_;
};

// The names of all sessions' functions, each once.
class PageNames {
 public:
  explicit PageNames(std::vector<std::string>& names) : names_(names) {}

  uint64_t number_of(std::string_view name) {
    const auto [known, is_new] = numbers_.try_emplace(std::string(name), names_.size());
    if (is_new) names_.emplace_back(name);
    return known->second;
  }

 private:
  std::vector<std::string>& names_;
  std::unordered_map<std::string, uint64_t> numbers_;
};

constexpr size_t kOwnNodes = kMaxPageNodes / 2;  // of a tree that is too large

// Calls of at least this total time have nodes of their own, so that there are not too many.
uint64_t least_total(const std::vector<CallTree::Node>& nodes) {
  if (nodes.size() <= kMaxPageNodes) return 0;
  std::vector<uint64_t> totals;
  totals.reserve(nodes.size());
  for (const CallTree::Node& node : nodes) totals.push_back(node.times.total_ns);
  const auto limit = totals.begin() + static_cast<ptrdiff_t>(kOwnNodes);
  std::nth_element(totals.begin(), limit, totals.end(), std::greater<>());
  return *limit + 1;
}

class TreeWriter {
 public:
  TreeWriter(ExportedSession& session, const calls::FunctionSlots& slots, PageNames& names)
      : session_(session), function_names_(session.names, slots), names_(names) {}

  html::Tree write(const CallTree& tree) {
    const std::vector<CallTree::Node>& nodes = tree.nodes();
    const uint64_t least = least_total(nodes);
    html::Tree page;
    std::vector<uint32_t> places(nodes.size());  // in `page`
    std::unordered_map<uint32_t, uint32_t> others;
    const bool has_lost = std::ranges::any_of(
        nodes, [](const CallTree::Node& node) { return node.parent == CallTree::kLost; });
    for (uint32_t i = 1; i < nodes.size(); ++i) {
      const CallTree::Node& node = nodes[i];
      if (i == CallTree::kLost && !has_lost) continue;
      if (i == CallTree::kOther && node.times.calls == 0) continue;
      const uint32_t parent = places[node.parent];
      const bool is_function = i >= CallTree::kFirstFunction;
      if (is_function && !session_.functions.wants(function_names_.id_of(node.slot))) {
        // What it did itself is its caller's, as in the other formats.
        places[i] = parent;
        if (parent != 0) page.nodes[parent].self_ns += node.times.self_ns;
        continue;
      }
      // Nothing is measured of what was lost: it is as wide as what is known below.
      if (has_lost && node.parent >= CallTree::kLost && parent == places[CallTree::kLost]) {
        page.nodes[parent].total_ns += node.times.total_ns;
      }
      const bool is_below_other = page.nodes[parent].name == html::Tree::kOtherPaths;
      if (is_below_other || (is_function && node.times.total_ns < least)) {
        places[i] = is_below_other ? parent : other_below(parent, page, others);
        html::Tree::Node& other = page.nodes[places[i]];
        if (!is_below_other) other.total_ns += node.times.total_ns;
        other.self_ns += node.times.self_ns;
        other.calls += node.times.calls;
        continue;
      }
      places[i] = static_cast<uint32_t>(page.nodes.size());
      page.nodes.push_back(
          {parent, name_of(i, node), node.times.total_ns, node.times.self_ns, node.times.calls});
    }
    return page;
  }

 private:
  static uint32_t other_below(uint32_t parent, html::Tree& page,
                              std::unordered_map<uint32_t, uint32_t>& others) {
    const auto [known, is_new] =
        others.try_emplace(parent, static_cast<uint32_t>(page.nodes.size()));
    if (is_new) page.nodes.push_back({parent, html::Tree::kOtherPaths, 0, 0, 0});
    return known->second;
  }

  int64_t name_of(uint32_t number, const CallTree::Node& node) {
    if (number == CallTree::kLost) return html::Tree::kAfterLoss;
    if (number == CallTree::kOther) return html::Tree::kOtherPaths;
    return static_cast<int64_t>(names_.number_of(function_names_.of(node.slot)));
  }

  ExportedSession& session_;
  const FunctionNames function_names_;
  PageNames& names_;
};

// The longest of them, in order of time.
void keep_longest(std::vector<html::Interval>& intervals) {
  if (intervals.size() > kMaxPageIntervals) {
    const auto length = [](const html::Interval& one) { return one.second - one.first; };
    std::nth_element(intervals.begin(),
                     intervals.begin() + static_cast<ptrdiff_t>(kMaxPageIntervals), intervals.end(),
                     [&](const auto& a, const auto& b) { return length(a) > length(b); });
    intervals.resize(kMaxPageIntervals);
  }
  std::sort(intervals.begin(), intervals.end());
}

class PageExport {
 public:
  PageExport(ExportedSessions& sessions, const PageOptions& options, ConvertLog& log)
      : sessions_(sessions), log_(log), names_(page_.names) {
    page_.can_refresh = options.can_refresh;
  }

  Status write(ByteSink& out) {
    find_time();
    for (const auto& session : sessions_) add(*session);
    std::sort(page_.functions.begin(), page_.functions.end(),
              [](const auto& a, const auto& b) { return a.self_ns > b.self_ns; });
    say();
    return html::write_page(page_, out);
  }

 private:
  void find_time() {
    bool is_first = true;
    for (const auto& session : sessions_) {
      const auto range = session->time_range(session->window());
      if (!range) continue;
      const uint64_t first_ns = session->line_ns(range->first_ns);
      const uint64_t last_ns = session->line_ns(range->last_ns);
      page_.first_ns = is_first ? first_ns : std::min(page_.first_ns, first_ns);
      page_.last_ns = is_first ? last_ns : std::max(page_.last_ns, last_ns);
      is_first = false;
    }
  }

  void add(ExportedSession& session) {
    calls::FunctionSlots slots;
    calls::FunctionTotals totals;
    const size_t count = session.reader.threads().size();
    for (size_t i = 0; i < count; ++i) {
      log_.progress(i, count);
      const atf::SessionThread& thread = session.reader.threads()[i];
      if (!thread.index) continue;
      add_thread(session, thread, slots, totals);
      session.drop_pages(thread.n);
    }
    const FunctionNames names(session.names, slots);
    for (uint32_t slot = 0; slot < totals.times().size(); ++slot) {
      const calls::FunctionTimes& times = totals.times()[slot];
      if (!times.is_seen() || !session.functions.wants(names.id_of(slot))) continue;
      page_.functions.push_back({names_.number_of(names.of(slot)), times.calls, times.total_ns,
                                 times.self_ns, times.percentile(500).value_or(0),
                                 times.percentile(990).value_or(0), times.longest_ns});
    }
  }

  void add_thread(ExportedSession& session, const atf::SessionThread& thread,
                  calls::FunctionSlots& slots, calls::FunctionTotals& totals) {
    CallTree tree;
    Activity activity(session, page_);
    calls::Sinks sinks(tree, totals, activity);
    const std::vector<calls::Stall> stalls = session.stalls_of(thread.n);
    std::vector<uint32_t> reasons;
    calls::ThreadCalls calls(slots, sinks, stalls, session.window());
    calls::read_thread(*thread.index, session.gaps_of(thread.n, reasons), calls);
    counts_.add(calls.counts());

    html::Thread shown;
    const std::string name = session.name_of_thread(thread.n);
    shown.name = (sessions_.size() == 1 ? "" : session.name_of_process() + ": ") +
                 (name.empty() ? "thread" : name) + " (" +
                 std::to_string(thread.index->header().thread_id) + ")";
    shown.activity = activity.take_parts();
    shown.gaps = activity.take_gaps();
    for (const calls::Stall& stall : stalls) {
      shown.stalls.emplace_back(session.line_ns(stall.first_ns), session.line_ns(stall.last_ns));
    }
    intervals_ += shown.gaps.size() + shown.stalls.size();
    keep_longest(shown.gaps);
    keep_longest(shown.stalls);
    intervals_ -= shown.gaps.size() + shown.stalls.size();
    shown.tree = TreeWriter(session, slots, names_).write(tree);
    page_.threads.push_back(std::move(shown));
  }

  void say() {
    for (const auto& session : sessions_) {
      page_.title += (page_.title.empty() ? "" : ", ") + session->name_of_process() + " (" +
                     std::to_string(session->about.identity.pid) + ")";
      if (!session->device().empty()) page_.facts.emplace_back("device", session->device());
    }
    page_.facts.emplace_back("time", milliseconds(page_.last_ns - page_.first_ns));
    page_.facts.emplace_back("events", with_thousands(counts_.events));
    page_.facts.emplace_back("calls", with_thousands(counts_.calls));
    page_.facts.emplace_back("threads", with_thousands(page_.threads.size()));
    page_.facts.emplace_back("functions", with_thousands(page_.functions.size()));
    if (counts_.stalled_ns != 0) {
      page_.facts.emplace_back("stalled, left out of the times", milliseconds(counts_.stalled_ns));
    }
    log_.count("events", counts_.events);
    log_.count("calls", counts_.calls);
    if (counts_.lost_events != 0) {
      log_.count("lost_events", counts_.lost_events);
      log_.remark(with_thousands(counts_.lost_events) +
                  " events were lost while recording: times around them are estimates");
    }
    log_.leave_out("returns without a call", counts_.lone_ends);
    log_.leave_out("calls nested deeper than can be followed", counts_.too_deep);
    log_.leave_out("events of an unknown kind", counts_.unknown_kinds);
    log_.leave_out("short stalls and gaps on the time line", intervals_);
    for (const storage::MissingInput& one : log_.missing()) {
      page_.missing.push_back(one.what +
                              (one.count == 0 ? "" : " (" + with_thousands(one.count) + ")"));
    }
    for (const std::string& remark : log_.remarks()) page_.missing.push_back(remark);
    for (const auto& [what, count] : log_.left_out()) {
      page_.missing.push_back("left out: " + what + " (" + with_thousands(count) + ")");
    }
  }

  static std::string milliseconds(uint64_t ns) {
    return with_thousands(ns / 1'000'000) + "." + std::to_string(ns / 100'000 % 10) + " ms";
  }

  ExportedSessions& sessions_;
  ConvertLog& log_;
  html::Page page_;
  PageNames names_;
  calls::ThreadCounts counts_;
  uint64_t intervals_ = 0;  // that are not shown
};

}  // namespace

Status export_page(ExportedSessions& sessions, const PageOptions& options, ByteSink& out,
                   ConvertLog& log) {
  return PageExport(sessions, options, log).write(out);
}

}  // namespace collect::ctl
