// The call tree of a thread with at most so many nodes: what is rare is put together below its
// caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "formats/calls/call_tree.h"
#include "formats/calls/group_times.h"

namespace collect::calls {

struct PathNode {
  // Slots of nodes that are no function.
  static constexpr uint32_t kRoot = UINT32_MAX;
  static constexpr uint32_t kAfterLoss = UINT32_MAX - 1;  // calls whose callers were lost
  static constexpr uint32_t kOther = UINT32_MAX - 2;      // paths that are not distinguished

  uint32_t parent = 0;  // lower than the node's own number
  uint32_t slot = kRoot;
  // Empty for kRoot. For kOther and kAfterLoss `total_ns` is the sum of their outermost calls.
  GroupTimes times;

  bool is_function() const { return slot < kOther; }
};

// Node 0 is the root. Where the tree has more than `most` nodes, those with the least time have
// none of their own. What a function that is not wanted did itself is its caller's; `wants` may be
// empty: all are.
std::vector<PathNode> path_tree(const CallTree& tree, size_t most,
                                const std::function<bool(uint32_t slot)>& wants = {});

// The tree with at most about `most` nodes: of more, those with the least time are put together.
std::vector<PathNode> fewer_paths(std::vector<PathNode> paths, size_t most);

}  // namespace collect::calls
