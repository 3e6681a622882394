#include "formats/calls/call_tree.h"

namespace collect::calls {
namespace {

constexpr size_t kFirstTable = 1024;  // a power of two

}  // namespace

CallTree::CallTree() : nodes_(kFirstFunction), table_(kFirstTable) {}

// At least half of the table is free.
uint32_t CallTree::find_or_add(uint32_t parent, uint32_t slot) {
  if (parent == kOther) return kOther;
  size_t at = hash_of(parent, slot) & (table_.size() - 1);
  while (table_[at] != 0) {
    const Node& node = nodes_[table_[at]];
    if (node.parent == parent && node.slot == slot) {
      nodes_[parent].newest_child = table_[at];
      return table_[at];
    }
    at = (at + 1) & (table_.size() - 1);
  }
  if (nodes_.size() >= kMaxNodes) return kOther;
  const auto number = static_cast<uint32_t>(nodes_.size());
  nodes_.push_back({slot, parent, 0, {}});
  nodes_[parent].newest_child = number;
  table_[at] = number;
  if (2 * nodes_.size() > table_.size()) grow_table();
  return number;
}

void CallTree::grow_table() {
  table_.assign(2 * table_.size(), 0);
  for (uint32_t number = kFirstFunction; number < nodes_.size(); ++number) {
    size_t at = hash_of(nodes_[number].parent, nodes_[number].slot) & (table_.size() - 1);
    while (table_[at] != 0) at = (at + 1) & (table_.size() - 1);
    table_[at] = number;
  }
}

void CallTree::add(FunctionSlots& slots, const CallTree& other, const FunctionSlots& other_slots) {
  std::vector<uint32_t> number_here;
  number_here.reserve(other.nodes_.size());
  for (const Node& node : other.nodes_) {
    auto here = static_cast<uint32_t>(number_here.size());
    if (here >= kFirstFunction) {
      here =
          find_or_add(number_here[node.parent], slots.slot_of(other_slots.function_of(node.slot)));
    }
    number_here.push_back(here);
    GroupTimes times = node.times;
    // What is within calls that are counted there already.
    if (here == kOther && number_here[node.parent] == kOther)
      times.total_ns = times.waited.total_ns = 0;
    nodes_[here].times.add(times);
  }
}

}  // namespace collect::calls
