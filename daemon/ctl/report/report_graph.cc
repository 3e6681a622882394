#include "daemon/ctl/report/report_graph.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <memory>
#include <ostream>

#include "daemon/ctl/check/trace_check.h"
#include "daemon/ctl/report/report_text.h"
#include "daemon/ctl/terminal/terminal.h"
#include "formats/calls/call_tree.h"
#include "formats/core/text/figures.h"
#include "storage/select/function_filter.h"

namespace collect::ctl {
namespace {

using calls::CallTree;

// A recursion of depth n that calls a function at each level has n paths to it, n / 2 long.
constexpr uint32_t kMaxPathFrames = 1024;                // of a path, from the function outwards
constexpr uint64_t kMaxGraphFrames = uint64_t{1} << 20;  // of all paths that are shown

// Calls of the function on one path; recursive calls belong to the outermost.
struct Backtrace {
  uint32_t node = 0;  // of the function
  calls::GroupTimes times;
};

// The calls below the function, on all paths by which it was called.
struct Callee {
  std::string name;
  uint32_t depth = 0;
  calls::GroupTimes times;
};

class Graph {
 public:
  Graph(const ReportedCapture& capture, const CallTree& tree, const calls::FunctionSlots& slots)
      : names_(capture.names()), nodes_(tree.nodes()), slots_(slots), paths_(nodes_.size()) {
    paths_[CallTree::kLost] = {1, CallTree::kLost};
    paths_[CallTree::kOther] = {1, CallTree::kOther};
    for (uint32_t i = CallTree::kFirstFunction; i < nodes_.size(); ++i) {
      const Path& parent = paths_[nodes_[i].parent];
      const uint64_t function = slots.function_of(nodes_[i].slot);
      // Mixed as CallTree's table is; it tells paths apart whose innermost frames are the same.
      paths_[i] = {parent.frames + 1, (parent.hash ^ function) * 0x9E3779B97F4A7C15ull + 1};
    }
  }

  Status choose(select::FunctionFilter& filter, const std::vector<storage::Symbol>& symbols) {
    is_chosen_.resize(slots_.size());
    for (uint32_t slot = 0; slot < slots_.size(); ++slot) {
      is_chosen_[slot] = filter.wants(slots_.function_of(slot));
    }
    COLLECT_TRY(filter.check_all_found("function of the selected events", symbols));
    build();
    if (!backtraces_.empty()) return {};
    return Error{Code::kNotFound, "no call of such a function is in the selected events"};
  }

  // Every path on which its last function itself was off the processor, the longest first.
  void choose_waits() {
    for (uint32_t number = CallTree::kFirstFunction; number < nodes_.size(); ++number) {
      if (nodes_[number].times.waited.self_ns == 0) continue;
      times_.add(nodes_[number].times);
      backtraces_.push_back({number, nodes_[number].times});
    }
    std::sort(backtraces_.begin(), backtraces_.end(),
              [this](const Backtrace& a, const Backtrace& b) {
                const uint64_t waited_a = a.times.waited.self_ns;
                const uint64_t waited_b = b.times.waited.self_ns;
                return waited_a != waited_b ? waited_a > waited_b : is_before(a.node, b.node);
              });
  }

  const std::vector<Backtrace>& backtraces() const { return backtraces_; }
  const std::vector<Callee>& callees() const { return callees_; }
  const calls::GroupTimes& times() const { return times_; }

  // Outermost first; the last is the function itself. At most kMaxPathFrames.
  std::vector<std::string> functions_of(const Backtrace& backtrace) const {
    std::vector<std::string> path;
    for (uint32_t number = backtrace.node;
         number != CallTree::kRoot && path.size() < kMaxPathFrames;
         number = nodes_[number].parent) {
      path.push_back(name_of(number));
    }
    std::reverse(path.begin(), path.end());
    return path;
  }
  // Outer ones, which functions_of() has not.
  uint64_t frames_left_out(const Backtrace& backtrace) const {
    const uint32_t frames = paths_[backtrace.node].frames;
    return frames - std::min(frames, kMaxPathFrames);
  }
  // How many of the first `limit` backtraces there is room for.
  size_t shown(uint64_t limit) const {
    uint64_t frames = 0;
    size_t count = 0;
    for (; count < std::min<uint64_t>(limit, backtraces_.size()); ++count) {
      frames += std::min(paths_[backtraces_[count].node].frames, kMaxPathFrames);
      if (frames > kMaxGraphFrames) break;
    }
    return count;
  }

 private:
  struct Path {
    uint32_t frames = 0;
    uint64_t hash = 0;
  };
  struct Merged {
    uint32_t slot = 0;
    calls::GroupTimes times;
    std::vector<uint32_t> children;
  };

  bool is_function(uint32_t number) const {
    return number >= CallTree::kFirstFunction && is_chosen_[nodes_[number].slot];
  }
  std::string name_of(uint32_t number) const {
    if (number == CallTree::kLost) return kCallerInDoubtName;
    if (number == CallTree::kOther) return kOtherPathsName;
    return report_name(names_, slots_.function_of(nodes_[number].slot));
  }

  // An order of paths that does not depend on which thread was read first: by the functions, the
  // innermost first, as far as that takes a bounded time.
  bool is_before(uint32_t a, uint32_t b) const {
    const Path& path_a = paths_[a];
    const Path& path_b = paths_[b];
    for (int frames = 0; a != b; a = nodes_[a].parent, b = nodes_[b].parent) {
      if (++frames > kMostCompared) {
        return path_a.frames != path_b.frames ? path_a.frames < path_b.frames
                                              : path_a.hash < path_b.hash;
      }
      const bool is_function_a = a >= CallTree::kFirstFunction;
      const bool is_function_b = b >= CallTree::kFirstFunction;
      if (!is_function_a || !is_function_b) return a < b;
      const uint64_t function_a = slots_.function_of(nodes_[a].slot);
      const uint64_t function_b = slots_.function_of(nodes_[b].slot);
      if (function_a != function_b) return function_a < function_b;
    }
    return false;
  }

  // Parents come before their children, so one pass over the nodes is enough.
  void build() {
    std::vector<uint32_t> merged_of(nodes_.size(), kNone);
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> merged_by;  // parent, slot
    std::vector<Merged> merged;
    std::vector<uint32_t> roots;
    for (uint32_t number = CallTree::kFirstFunction; number < nodes_.size(); ++number) {
      const CallTree::Node& node = nodes_[number];
      const uint32_t parent = merged_of[node.parent];
      const bool is_root = parent == kNone;
      if (is_root && !is_function(number)) continue;
      const auto [at, is_new] = merged_by.try_emplace({parent, node.slot}, merged.size());
      merged_of[number] = at->second;
      if (is_new) {
        merged.push_back({node.slot, {}, {}});
        (is_root ? roots : merged[parent].children).push_back(at->second);
      }
      merged[at->second].times.add(node.times);
      if (!is_root) continue;
      times_.add(node.times);
      backtraces_.push_back({number, node.times});
    }
    std::sort(backtraces_.begin(), backtraces_.end(),
              [this](const Backtrace& a, const Backtrace& b) {
                if (a.times.total_ns != b.times.total_ns)
                  return a.times.total_ns > b.times.total_ns;
                return is_before(a.node, b.node);
              });
    list_callees(merged, std::move(roots));
  }

  // In the order of printing: each before its callees, the longest first.
  void list_callees(std::vector<Merged>& merged, std::vector<uint32_t> roots) {
    const auto shortest_first = [&](std::vector<uint32_t>& numbers) {
      std::sort(numbers.begin(), numbers.end(), [&](uint32_t a, uint32_t b) {
        const uint64_t total_a = merged[a].times.total_ns, total_b = merged[b].times.total_ns;
        if (total_a != total_b) return total_a < total_b;
        return slots_.function_of(merged[a].slot) > slots_.function_of(merged[b].slot);
      });
    };
    std::vector<std::pair<uint32_t, uint32_t>> open;  // number, depth
    shortest_first(roots);
    for (const uint32_t root : roots) open.emplace_back(root, 0);
    while (!open.empty()) {
      const auto [number, depth] = open.back();
      open.pop_back();
      Merged& each = merged[number];
      callees_.push_back({report_name(names_, slots_.function_of(each.slot)), depth, each.times});
      shortest_first(each.children);
      for (const uint32_t child : each.children) open.emplace_back(child, depth + 1);
    }
  }

  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr int kMostCompared = 64;

  const read::NameTable& names_;
  const std::vector<CallTree::Node>& nodes_;
  const calls::FunctionSlots& slots_;
  std::vector<Path> paths_;      // by node
  std::vector<bool> is_chosen_;  // by slot
  std::vector<Backtrace> backtraces_;
  std::vector<Callee> callees_;
  calls::GroupTimes times_;
};

void put_times(TextOut& out, const calls::GroupTimes& times, uint64_t whole) {
  put_time_cell(out, times.total_ns);
  put_percent_cell(out, times.total_ns, whole, 7);
  out.put("  ");
  put_time_cell(out, times.self_ns);
  out.dec(times.calls, 14);
  out.put("  ");
}

constexpr std::string_view kHeading = "  Total time      %     Self time         Calls  ";
constexpr std::string_view kWaitsHeading = "      Waited      %         Calls  ";

// A line for each path, which put_figures() begins; `room` is what that leaves of it.
template <class PutFigures>
void put_paths(TextOut& out, const Graph& graph, const ReportOptions& options, size_t room,
               PutFigures put_figures) {
  const size_t paths = graph.shown(options.limit);
  for (size_t i = 0; i < paths; ++i) {
    const Backtrace& backtrace = graph.backtraces()[i];
    put_figures(backtrace.times);
    std::string path;  // with the function itself at its end
    if (const uint64_t more = graph.frames_left_out(backtrace); more != 0) {
      path = fmt::format("({} more)", with_thousands(more));
    }
    for (const std::string& function : graph.functions_of(backtrace)) {
      path += (path.empty() ? "" : " > ") + printable(function);
    }
    out.put(cut_to_end(path, room));
    out.put('\n');
  }
  if (paths < std::min<uint64_t>(options.limit, graph.backtraces().size())) {
    out.put("# ");
    out.put(with_thousands(graph.backtraces().size() - paths));
    out.put(" more paths: they are too long to be shown, all of them\n");
  }
}

void print_text(TextOut& out, const Graph& graph, const ReportOptions& options) {
  const uint64_t whole = graph.times().total_ns;
  const size_t room = columns_left(options.columns, kHeading.size());
  put_heading(out, kHeading, "Called on the path", options.color);
  put_paths(out, graph, options, room,
            [&](const calls::GroupTimes& times) { put_times(out, times, whole); });
  out.put('\n');
  put_heading(out, kHeading, "Function and what it called", options.color);
  const uint64_t callees = std::min<uint64_t>(options.limit, graph.callees().size());
  for (uint64_t i = 0; i < callees; ++i) {
    const Callee& callee = graph.callees()[i];
    put_times(out, callee.times, whole);
    const std::string indent(call_indent(callee.depth), ' ');
    out.put(cut_to(indent + printable(callee.name), room));
    out.put('\n');
  }
}

template <class AddFigures>
void add_paths(Json& document, const Graph& graph, const ReportOptions& options,
               AddFigures add_figures) {
  Json paths = Json::array();
  const size_t shown = graph.shown(options.limit);
  for (size_t i = 0; i < shown; ++i) {
    Json one{{"functions", graph.functions_of(graph.backtraces()[i])}};
    const uint64_t more = graph.frames_left_out(graph.backtraces()[i]);
    if (more != 0) one["frames_left_out"] = more;
    add_figures(one, graph.backtraces()[i].times);
    paths.push_back(std::move(one));
  }
  document["backtraces"] = std::move(paths);
  const uint64_t wanted = std::min<uint64_t>(options.limit, graph.backtraces().size());
  if (shown < wanted) document["backtraces_left_out"] = graph.backtraces().size() - shown;
}

void add_graph(Json& document, const Graph& graph, const ReportOptions& options) {
  add_paths(document, graph, options, add_times);
  Json callees = Json::array();
  for (size_t i = 0; i < std::min<uint64_t>(options.limit, graph.callees().size()); ++i) {
    const Callee& callee = graph.callees()[i];
    Json one{{"name", callee.name}, {"depth", callee.depth}};
    add_times(one, callee.times);
    callees.push_back(std::move(one));
  }
  document["callees"] = std::move(callees);
}

void put_other_paths(TextOut& out, uint64_t calls) {
  if (calls == 0) return;
  out.put("# ");
  out.dec(calls);
  out.put(" calls on other paths: there are too many to show each\n");
}

}  // namespace

std::unique_ptr<ReportWorker<CallTree>> read_call_tree(
    const ReportedCapture& capture, const std::function<void(size_t, size_t)>& progress) {
  auto workers =
      read_capture<CallTree>(capture, progress, [](auto&, size_t, const calls::ThreadCounts&) {});
  auto& first = *workers.front();
  for (size_t i = 1; i < workers.size(); ++i) {
    first.sink.add(first.slots, workers[i]->sink, workers[i]->slots);
    first.counts.add(workers[i]->counts);
  }
  return std::move(workers.front());
}

int print_report_graph(TextOut& out, const ReportedCapture& capture, const ReportOptions& options,
                       const Answer& answer) {
  auto filter = select::FunctionFilter::make({options.graph}, capture.names());
  if (!filter) return answer.refuse_briefly(filter.error(), 2);
  const auto tree = read_call_tree(capture, progress_line(answer.err, options.progress));
  const ReportWorker<CallTree>& first = *tree;
  Graph graph(capture, first.sink, first.slots);
  if (const Status chosen = graph.choose(*filter, capture.manifest().symbols); !chosen.ok()) {
    return answer.refuse_briefly(chosen.error(), 1);
  }
  const uint64_t left_out = first.sink.nodes()[CallTree::kOther].times.calls;
  if (options.json) {
    Json document = json_document();
    add_capture(document, capture, first.counts, capture.threads().size());
    document["calls_of_other_paths"] = left_out;
    add_graph(document, graph, options);
    out.put(json_line(document));
    return 0;
  }
  print_text(out, graph, options);
  put_other_paths(out, left_out);
  put_remarks(out, capture, first.counts);
  return 0;
}

int print_report_waits(TextOut& out, const ReportedCapture& capture, const ReportOptions& options,
                       const Answer& answer) {
  if (!capture.has_switches()) {
    const std::string& why = capture.manifest().identity.no_switches;
    return answer.refuse_briefly(
        {Code::kNotFound, "when threads were off the processor is not known: " +
                              (why.empty() ? "it was not recorded" : why)},
        1);
  }
  const auto tree = read_call_tree(capture, progress_line(answer.err, options.progress));
  const uint64_t left_out = tree->sink.nodes()[CallTree::kOther].times.calls;
  Graph graph(capture, tree->sink, tree->slots);
  graph.choose_waits();
  const uint64_t whole = tree->counts.waited_ns;
  if (options.json) {
    Json document = json_document();
    add_capture(document, capture, tree->counts, capture.threads().size());
    document["waited_ns"] = whole;
    document["calls_of_other_paths"] = left_out;
    add_paths(document, graph, options, [](Json& json, const calls::GroupTimes& times) {
      json["calls"] = times.calls;
      json["waited_ns"] = times.waited.self_ns;
    });
    out.put(json_line(document));
    return 0;
  }
  put_heading(out, kWaitsHeading, "Off the processor on the path", options.color);
  put_paths(out, graph, options, columns_left(options.columns, kWaitsHeading.size()),
            [&](const calls::GroupTimes& times) {
              put_time_cell(out, times.waited.self_ns);
              put_percent_cell(out, times.waited.self_ns, whole, 7);
              out.dec(times.calls, 14);
              out.put("  ");
            });
  put_other_paths(out, left_out);
  put_remarks(out, capture, tree->counts);
  return 0;
}

}  // namespace collect::ctl
