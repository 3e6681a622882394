// The tree of calls as pages and indexes keep it.
#include "formats/calls/path_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "formats/calls/function_totals.h"
#include "formats/calls/read_thread.h"
#include "formats/calls/sinks.h"
#include "tests/formats/calls/given_calls.h"

namespace collect::calls {
namespace {

using testing::Events;
using testing::kCall;
using testing::kReturn;

TEST(PathTree, CallsBehindALossHaveANodeAbove) {
  // `a` may have ended in what was lost, so that it is not known who called `b`.
  const std::vector<testing::Event> events = {
      {10, kCall, 'a'}, {20, kCall, 'b'}, {35, kReturn, 'b'}};
  FunctionSlots slots;
  FunctionTotals totals;
  CallTree tree;
  Sinks sinks(totals, tree);
  ThreadCalls calls(slots, sinks);
  read_thread(Events(events), {{1, 3, 0, 0}}, calls);
  const std::vector<PathNode> paths = path_tree(tree, 100, nullptr);
  const auto b = std::ranges::find(paths, slots.slot_of('b'), &PathNode::slot);
  ASSERT_NE(b, paths.end());
  const PathNode& above = paths[b->parent];
  EXPECT_EQ(above.slot, PathNode::kAfterLoss);
  EXPECT_EQ(above.parent, 0u);
  EXPECT_EQ(above.times.total_ns, 15u) << "as wide as what is known below";
  EXPECT_TRUE(std::ranges::none_of(
      paths, [](const PathNode& node) { return node.slot == PathNode::kOther; }));
}

}  // namespace
}  // namespace collect::calls
