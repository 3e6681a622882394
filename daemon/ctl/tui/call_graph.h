// The call tree of a capture in the order of a screen: each path before what was called on it, the
// longest first.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "daemon/ctl/report/report_profile.h"
#include "formats/calls/call_tree.h"

namespace collect::ctl::tui {

class CallGraph {
 public:
  struct Node {
    uint32_t slot = calls::CallTree::kNoSlot;
    uint32_t tree_node = 0;  // tells those apart that are no function
    uint32_t parent = kNone;
    uint32_t depth = 0;
    uint32_t end = 0;  // the first node that is not below it
    calls::GroupTimes times;
  };
  static constexpr uint32_t kNone = UINT32_MAX;

  // `names` outlive it.
  CallGraph(std::unique_ptr<ReportWorker<calls::CallTree>> tree, const read::NameTable& names);

  const std::vector<Node>& nodes() const { return nodes_; }
  bool has_children(uint32_t node) const { return nodes_[node].end != node + 1; }
  std::string name_of(uint32_t node) const;
  // FunctionSlots::kOther: it is none.
  uint64_t function_of(uint32_t node) const;
  size_t slots() const { return slots_.size(); }

 private:
  // Numbers of the tree's nodes: by parent, the longest first.
  std::vector<uint32_t> ordered(const std::vector<calls::CallTree::Node>& tree) const;
  void lay_out(const std::vector<calls::CallTree::Node>& tree);

  const read::NameTable& names_;
  calls::FunctionSlots slots_;
  std::vector<Node> nodes_;
};

}  // namespace collect::ctl::tui
