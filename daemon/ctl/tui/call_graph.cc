#include "daemon/ctl/tui/call_graph.h"

#include <algorithm>
#include <utility>

namespace collect::ctl::tui {
namespace {

using calls::CallTree;

bool is_shown(const std::vector<CallTree::Node>& tree, uint32_t number) {
  return number >= CallTree::kFirstFunction ||
         (number != CallTree::kRoot && tree[number].times.calls != 0);
}

// The node behind a gap has no times of its own: those of what is below it.
std::vector<CallTree::Node> with_times_of_lost(std::vector<CallTree::Node> tree) {
  for (size_t i = CallTree::kFirstFunction; i < tree.size(); ++i) {
    if (tree[i].parent != CallTree::kLost) continue;
    calls::GroupTimes times = tree[i].times;
    times.self_ns = 0;
    times.waited.self_ns = 0;
    tree[CallTree::kLost].times.add(times);
  }
  return tree;
}

}  // namespace

CallGraph::CallGraph(std::unique_ptr<ReportWorker<CallTree>> tree, const read::NameTable& names)
    : names_(names), slots_(std::move(tree->slots)) {
  lay_out(with_times_of_lost(tree->sink.nodes()));
}

std::vector<uint32_t> CallGraph::ordered(const std::vector<CallTree::Node>& tree) const {
  std::vector<uint32_t> numbers;
  numbers.reserve(tree.size());
  for (uint32_t number = 0; number < tree.size(); ++number) {
    if (is_shown(tree, number)) numbers.push_back(number);
  }
  const auto function = [&](uint32_t number) {
    return number < CallTree::kFirstFunction ? uint64_t{number}
                                             : slots_.function_of(tree[number].slot);
  };
  std::sort(numbers.begin(), numbers.end(), [&](uint32_t a, uint32_t b) {
    if (tree[a].parent != tree[b].parent) return tree[a].parent < tree[b].parent;
    if (tree[a].times.total_ns != tree[b].times.total_ns) {
      return tree[a].times.total_ns > tree[b].times.total_ns;
    }
    return function(a) < function(b);
  });
  return numbers;
}

void CallGraph::lay_out(const std::vector<CallTree::Node>& tree) {
  const std::vector<uint32_t> numbers = ordered(tree);
  // Where the children of each begin in `numbers`; those of the last end with it.
  std::vector<uint32_t> first(tree.size() + 1, 0);
  for (const uint32_t number : numbers) ++first[tree[number].parent + 1];
  for (size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
  struct Open {
    uint32_t number;
    uint32_t parent;
  };
  std::vector<Open> open;
  const auto open_children = [&](uint32_t number, uint32_t node) {
    for (uint32_t at = first[number + 1]; at-- > first[number];)
      open.push_back({numbers[at], node});
  };
  nodes_.reserve(numbers.size());
  open_children(CallTree::kRoot, kNone);
  while (!open.empty()) {
    const Open next = open.back();
    open.pop_back();
    const auto node = static_cast<uint32_t>(nodes_.size());
    const uint32_t depth = next.parent == kNone ? 0 : nodes_[next.parent].depth + 1;
    nodes_.push_back({tree[next.number].slot, next.number, next.parent, depth, node + 1,
                      tree[next.number].times});
    open_children(next.number, node);
  }
  for (size_t i = nodes_.size(); i-- > 0;) {
    const uint32_t parent = nodes_[i].parent;
    if (parent != kNone) nodes_[parent].end = std::max(nodes_[parent].end, nodes_[i].end);
  }
}

std::string CallGraph::name_of(uint32_t node) const {
  if (nodes_[node].tree_node == CallTree::kLost) return kCallerInDoubtName;
  if (nodes_[node].tree_node == CallTree::kOther) return kOtherPathsName;
  return report_name(names_, slots_.function_of(nodes_[node].slot));
}

uint64_t CallGraph::function_of(uint32_t node) const {
  return nodes_[node].slot == CallTree::kNoSlot ? calls::FunctionSlots::kOther
                                                : slots_.function_of(nodes_[node].slot);
}

}  // namespace collect::ctl::tui
