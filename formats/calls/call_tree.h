// The call tree: one node for each path of functions from the outermost call on, as a sink of
// ThreadCalls. Used on one thread; add() puts the results of several together. Memory grows with
// the paths, up to kMaxNodes of them, and with the depth of the open calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "formats/calls/call.h"
#include "formats/calls/function_slots.h"
#include "formats/calls/group_times.h"

namespace collect::calls {

class CallTree : public CallSink {
 public:
  static constexpr size_t kMaxNodes = size_t{1} << 20;
  // The first three nodes are no functions.
  static constexpr uint32_t kRoot = 0;   // parent of the outermost calls
  static constexpr uint32_t kLost = 1;   // parent of calls behind a gap whose caller is in doubt
  static constexpr uint32_t kOther = 2;  // the calls of all paths beyond kMaxNodes, together
  static constexpr uint32_t kFirstFunction = 3;
  static constexpr uint32_t kNoSlot = UINT32_MAX;  // the slot of these three

  struct Node {
    uint32_t slot = kNoSlot;
    uint32_t parent = kRoot;    // lower than the node's own number
    uint32_t newest_child = 0;  // the one that was called last; 0: none
    GroupTimes times;           // of kOther, without the totals of calls within it
  };

  CallTree();

  void on_call_begin(const Call& call) {
    if (call.depth >= open_.size()) open_.resize(call.depth + 1);
    const uint32_t parent = call.depth == 0           ? kRoot
                            : call.is_caller_in_doubt ? kLost
                                                      : open_[call.depth - 1];
    const uint32_t node = child_of(parent, call.slot);
    open_[call.depth] = node;
    ++nodes_[node].times.calls;
  }
  void on_call_end(const EndedCall& call) {
    const uint32_t number = open_[call.depth];
    GroupTimes& times = nodes_[number].times;
    times.self_ns += call.self_ns;
    const bool is_within_other =
        number == kOther && call.depth != 0 && open_[call.depth - 1] == kOther;
    if (!is_within_other) times.total_ns += call.total_ns;
    const WaitedTimes waited = waits_.end(call.depth);
    times.waited.add({is_within_other ? 0 : waited.total_ns, waited.self_ns});
  }
  void on_wait(uint64_t ns, size_t depth) { waits_.wait(ns, depth); }

  // The innermost of `depth` calls that are open now; kRoot: none is.
  uint32_t innermost(size_t depth) const { return depth == 0 ? kRoot : open_[depth - 1]; }
  // Parents come before their children. kRoot and kLost have no times of their own.
  const std::vector<Node>& nodes() const { return nodes_; }
  // `slots` are this one's, `other_slots` the other's.
  void add(FunctionSlots& slots, const CallTree& other, const FunctionSlots& other_slots);

 private:
  uint32_t child_of(uint32_t parent, uint32_t slot) {
    const uint32_t newest = nodes_[parent].newest_child;
    if (newest != 0 && nodes_[newest].slot == slot) return newest;
    return find_or_add(parent, slot);
  }
  uint32_t find_or_add(uint32_t parent, uint32_t slot);
  static size_t hash_of(uint32_t parent, uint32_t slot) {
    return static_cast<size_t>((uint64_t{parent} << 32 | slot) * 0x9E3779B97F4A7C15ull >> 32);
  }
  void grow_table();

  std::vector<Node> nodes_;
  std::vector<uint32_t> table_;  // numbers of nodes by hash, open addressing; 0: free
  std::vector<uint32_t> open_;   // by depth
  WaitStack waits_;
};

}  // namespace collect::calls
