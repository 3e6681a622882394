#include "formats/calls/path_tree.h"

#include <algorithm>
#include <functional>
#include <unordered_map>

namespace collect::calls {
namespace {

// Calls of at least this total time have nodes of their own, so that there are not too many: half
// of them, because each may have a node of other paths below it.
template <class Node>
uint64_t least_total(const std::vector<Node>& nodes, size_t most) {
  if (nodes.size() <= most) return 0;
  std::vector<uint64_t> totals;
  totals.reserve(nodes.size());
  for (const Node& node : nodes) totals.push_back(node.times.total_ns);
  const auto limit = totals.begin() + static_cast<std::ptrdiff_t>(most / 2);
  std::nth_element(totals.begin(), limit, totals.end(), std::greater<>());
  return *limit + 1;
}

uint32_t other_below(uint32_t parent, std::vector<PathNode>& paths,
                     std::unordered_map<uint32_t, uint32_t>& others) {
  const auto [known, is_new] = others.try_emplace(parent, static_cast<uint32_t>(paths.size()));
  if (is_new) paths.push_back({parent, PathNode::kOther, {}});
  return known->second;
}

}  // namespace

std::vector<PathNode> path_tree(const CallTree& tree, size_t most,
                                const std::function<bool(uint32_t slot)>& wants) {
  const std::vector<CallTree::Node>& nodes = tree.nodes();
  const uint64_t least = least_total(nodes, most);
  std::vector<PathNode> paths = {PathNode{}};
  std::vector<uint32_t> places(nodes.size());  // in `paths`
  std::unordered_map<uint32_t, uint32_t> others;
  const bool has_lost = std::ranges::any_of(
      nodes, [](const CallTree::Node& node) { return node.parent == CallTree::kLost; });
  for (uint32_t i = 1; i < nodes.size(); ++i) {
    const CallTree::Node& node = nodes[i];
    if (i == CallTree::kLost && !has_lost) continue;
    if (i == CallTree::kOther && node.times.calls == 0) continue;
    const uint32_t parent = places[node.parent];
    const bool is_function = i >= CallTree::kFirstFunction;
    if (is_function && wants && !wants(node.slot)) {
      places[i] = parent;
      if (parent != 0) {
        paths[parent].times.self_ns += node.times.self_ns;
        paths[parent].times.waited.self_ns += node.times.waited.self_ns;
      }
      continue;
    }
    // Nothing is measured of what was lost: it is as wide as what is known below.
    if (paths[parent].slot == PathNode::kAfterLoss) {
      paths[parent].times.total_ns += node.times.total_ns;
      paths[parent].times.waited.total_ns += node.times.waited.total_ns;
    }
    const bool is_below_other = paths[parent].slot == PathNode::kOther;
    if (is_below_other || (is_function && node.times.total_ns < least)) {
      places[i] = is_below_other ? parent : other_below(parent, paths, others);
      GroupTimes& other = paths[places[i]].times;
      GroupTimes times = node.times;
      if (is_below_other) times.total_ns = times.waited.total_ns = 0;
      other.add(times);
      continue;
    }
    places[i] = static_cast<uint32_t>(paths.size());
    const uint32_t slot = is_function            ? node.slot
                          : i == CallTree::kLost ? PathNode::kAfterLoss
                                                 : PathNode::kOther;
    paths.push_back({parent, slot, node.times});
  }
  return paths;
}

std::vector<PathNode> fewer_paths(std::vector<PathNode> paths, size_t most) {
  if (paths.size() <= most) return paths;
  const uint64_t least = least_total(paths, most);
  std::vector<PathNode> kept = {paths.front()};
  std::vector<uint32_t> places(paths.size());  // in `kept`
  std::unordered_map<uint32_t, uint32_t> others;
  for (uint32_t i = 1; i < paths.size(); ++i) {
    const PathNode& node = paths[i];
    const uint32_t parent = places[node.parent];
    const bool is_below_other = kept[parent].slot == PathNode::kOther;
    const bool is_small = node.slot != PathNode::kAfterLoss && node.times.total_ns < least;
    if (is_below_other || is_small || node.slot == PathNode::kOther) {
      places[i] = is_below_other ? parent : other_below(parent, kept, others);
      GroupTimes times = node.times;
      if (is_below_other) times.total_ns = times.waited.total_ns = 0;
      kept[places[i]].times.add(times);
      continue;
    }
    places[i] = static_cast<uint32_t>(kept.size());
    kept.push_back({parent, node.slot, node.times});
  }
  return kept;
}

}  // namespace collect::calls
