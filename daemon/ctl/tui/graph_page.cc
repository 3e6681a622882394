#include "daemon/ctl/tui/graph_page.h"

#include <algorithm>

#include "daemon/ctl/terminal/terminal.h"

namespace collect::ctl::tui {
namespace {

// What is unfolded at first: paths with a tenth of the time, as deep as a screen is high.
constexpr uint64_t kFirstShare = 10;
constexpr uint32_t kFirstDepth = 20;
// Of one key.
constexpr size_t kMostUnfolded = 100'000;

}  // namespace

GraphPage::GraphPage(const CallGraph& graph, uint64_t whole_ns)
    : graph_(graph), whole_ns_(whole_ns), unfolded_(graph.nodes().size()) {
  for (uint32_t node = 0; node < graph_.nodes().size(); ++node) {
    const CallGraph::Node& one = graph_.nodes()[node];
    unfolded_[node] = one.depth < kFirstDepth && one.times.total_ns >= whole_ns / kFirstShare;
  }
  list_visible();
}

void GraphPage::list_visible() {
  visible_.clear();
  for (uint32_t node = 0; node < graph_.nodes().size();) {
    visible_.push_back(node);
    node = unfolded_[node] ? node + 1 : graph_.nodes()[node].end;
  }
}

std::string GraphPage::keys() const {
  return "q:quit  ?:keys  Backspace:back  Enter:fold  f:function  c:calls  *:unfold all";
}

std::string GraphPage::heading(size_t) const {
  TextBuffer out;
  put_right(out, "%TOTAL", kShareColumns);
  put_right(out, "TOTAL", kTimeColumns);
  put_right(out, "CALLS", kCallsColumns);
  out.put("  FUNCTION");
  return std::string(out.text());
}

std::string GraphPage::line(size_t row, size_t columns) const {
  const uint32_t node = visible_[row];
  const CallGraph::Node& one = graph_.nodes()[node];
  TextBuffer out;
  put_share(out, one.times.total_ns, whole_ns_);
  put_duration(out, one.times.total_ns);
  put_calls(out, one.times.calls);
  const size_t used = kShareColumns + kTimeColumns + kCallsColumns + 2;
  const size_t room = columns > used ? columns - used : 0;
  // Deep ones are at the edge of the half that names do not need.
  const size_t indent = std::min(call_indent(one.depth), room / 2);
  out.put("  ");
  out.repeat(' ', indent);
  out.put(!graph_.has_children(node) ? "  " : unfolded_[node] ? "- " : "+ ");
  const std::string name = printable(graph_.name_of(node));
  out.put(short_name(name, room > indent + 2 ? room - indent - 2 : 0));
  return std::string(out.text());
}

std::string GraphPage::below(size_t row) const {
  return printable(graph_.name_of(visible_[row]));
}

std::optional<uint64_t> GraphPage::function() const {
  if (visible_.empty()) return std::nullopt;
  const uint64_t function = graph_.function_of(visible_[chosen()]);
  if (function == calls::FunctionSlots::kOther) return std::nullopt;
  return function;
}

Page::Target GraphPage::enter() {
  if (visible_.empty()) return {};
  const uint32_t node = visible_[chosen()];
  set_unfolded(node, !unfolded_[node]);
  return {Target::Kind::kStay};
}

void GraphPage::set_unfolded(uint32_t node, bool unfolded) {
  if (!graph_.has_children(node) || unfolded_[node] == unfolded) return;
  unfolded_[node] = unfolded;
  list_visible();
}

void GraphPage::unfold_below(uint32_t node) {
  size_t count = 0;
  for (uint32_t at = node; at < graph_.nodes()[node].end && count < kMostUnfolded; ++at, ++count) {
    unfolded_[at] = true;
  }
  list_visible();
}

void GraphPage::fold_all() {
  if (visible_.empty()) return;
  uint32_t root = visible_[chosen()];
  while (graph_.nodes()[root].parent != CallGraph::kNone) root = graph_.nodes()[root].parent;
  unfolded_.assign(unfolded_.size(), false);
  list_visible();
  choose_node(root);
}

void GraphPage::choose_node(uint32_t node) {
  for (uint32_t above = graph_.nodes()[node].parent; above != CallGraph::kNone;
       above = graph_.nodes()[above].parent) {
    unfolded_[above] = true;
  }
  list_visible();
  choose(static_cast<size_t>(std::ranges::lower_bound(visible_, node) - visible_.begin()));
}

void GraphPage::move_left(uint32_t node) {
  if (unfolded_[node] && graph_.has_children(node)) {
    set_unfolded(node, false);
  } else if (graph_.nodes()[node].parent != CallGraph::kNone) {
    choose_node(graph_.nodes()[node].parent);
  }
}

void GraphPage::move_right(uint32_t node) {
  if (!graph_.has_children(node)) return;
  if (unfolded_[node]) {
    choose(chosen() + 1);
  } else {
    set_unfolded(node, true);
  }
}

bool GraphPage::press(const KeyPress& key) {
  if (visible_.empty()) return false;
  const uint32_t node = visible_[chosen()];
  if (key.key == Key::kLeft) {
    move_left(node);
  } else if (key.key == Key::kRight) {
    move_right(node);
  } else if (key.text == "+") {
    set_unfolded(node, true);
  } else if (key.text == "-") {
    set_unfolded(node, false);
  } else if (key.text == "*") {
    unfold_below(node);
  } else if (key.text == "=") {
    fold_all();
  } else {
    return false;
  }
  return true;
}

bool GraphPage::find(const SearchText& text, bool forward) {
  if (visible_.empty()) return false;
  // Many nodes are of few functions.
  enum class Known : uint8_t { kNot, kNo, kYes };
  std::vector<Known> known(graph_.slots(), Known::kNot);
  const auto is_found = [&](uint32_t node) {
    const uint32_t slot = graph_.nodes()[node].slot;
    if (slot >= known.size()) return text.is_in(graph_.name_of(node));
    if (known[slot] == Known::kNot) {
      known[slot] = text.is_in(graph_.name_of(node)) ? Known::kYes : Known::kNo;
    }
    return known[slot] == Known::kYes;
  };
  const auto count = static_cast<uint32_t>(graph_.nodes().size());
  const uint32_t from = visible_[chosen()];
  for (uint32_t step = 1; step <= count; ++step) {
    const uint32_t node = (from + (forward ? step : count - step)) % count;
    if (!is_found(node)) continue;
    choose_node(node);
    return true;
  }
  return false;
}

}  // namespace collect::ctl::tui
