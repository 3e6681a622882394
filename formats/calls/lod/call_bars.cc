#include "formats/calls/lod/call_bars.h"

#include <algorithm>
#include <utility>

namespace collect::calls {
namespace {

constexpr uint32_t kNearlyWhole = kLodWhole - 2;  // shares are rounded

// Rounded, and never more than `ns`.
uint64_t part_of(uint64_t ns, uint16_t share) {
  return ns / kLodWhole * share + (ns % kLodWhole * share + kLodWhole / 2) / kLodWhole;
}

}  // namespace

void CallBars::on_call_end(const EndedCall& call) {
  if (call.depth >= kRows) {
    ++deeper_;
    return;
  }
  CallBar bar;
  bar.first_ns = std::clamp(call.begin.ns, window_.first_ns, window_.last_ns);
  bar.last_ns = std::clamp(call.end.ns, bar.first_ns, window_.last_ns);
  bar.covered_ns = bar.last_ns - bar.first_ns;
  bar.calls = 1;
  bar.slot = call.slot;
  bar.depth = call.depth;
  bar.is_call = true;
  bar.is_whole = call.is_whole;
  bar.reason = call.reason;
  bar.begin = call.begin;
  bar.detail_seq_of_end = call.end.detail_seq;
  bar.total_ns = call.total_ns;
  bar.self_ns = call.self_ns;
  add(bar);
}

// A bar that is wider than a column is alone; others of its column are one.
void CallBars::add(CallBar bar) {
  Row& row = this->row(bar.depth);
  const bool is_wide = bar.last_ns - bar.first_ns >= column_ns_;
  const bool is_same =
      row.has_pending && !is_wide && column_of(row.pending.first_ns) == column_of(bar.first_ns);
  if (!is_same) {
    flush(row);
    if (is_wide) {
      row.bars.push_back(bar);
      return;
    }
    row.pending = bar;
    row.longest_ns = bar.covered_ns;
    row.has_pending = true;
    return;
  }
  CallBar& pending = row.pending;
  pending.is_call = false;
  pending.last_ns = std::max(pending.last_ns, bar.last_ns);
  pending.covered_ns += bar.covered_ns;
  pending.calls += bar.calls;
  if (bar.covered_ns <= row.longest_ns) return;
  row.longest_ns = bar.covered_ns;
  pending.slot = bar.slot;
}

CallBars::Row& CallBars::row(uint32_t depth) {
  if (depth >= rows_.size()) rows_.resize(depth + 1);
  return rows_[depth];
}

void CallBars::flush(Row& row) {
  if (std::exchange(row.has_pending, false)) row.bars.push_back(row.pending);
}

std::vector<CallBar> CallBars::take() {
  std::vector<CallBar> all;
  for (Row& row : rows_) {
    flush(row);
    all.insert(all.end(), row.bars.begin(), row.bars.end());
    row.bars = {};
  }
  return all;
}

Status CallBars::add(const LodReader& lod) {
  if (lod.levels() == 0) return {};
  return visit(lod, lod.levels() - 1, 0);
}

Status CallBars::visit(const LodReader& lod, size_t level, uint64_t number) {
  LodReader::Node node;
  COLLECT_TRY(lod.read(level, number, node));
  if (node.first_ns > window_.last_ns || node.end_ns < window_.first_ns) return {};
  if (level == 0 || node.end_ns - node.first_ns < column_ns_) {
    add_node(node);
    return {};
  }
  const uint64_t first = number * kLodFanOut;
  const uint64_t end = std::min(lod.size(level - 1), first + kLodFanOut);
  for (uint64_t below = first; below < end; ++below) COLLECT_TRY(visit(lod, level - 1, below));
  return {};
}

// Where in the node its calls were is not known: its bars are as long as the node.
void CallBars::add_node(const LodReader::Node& node) {
  const uint64_t node_ns = node.end_ns - std::min(node.first_ns, node.end_ns);  // times may fall
  CallBar bar;
  bar.first_ns = std::clamp(node.first_ns, window_.first_ns, window_.last_ns);
  bar.last_ns = std::clamp(node.end_ns, bar.first_ns, window_.last_ns);
  const uint64_t shown_ns = bar.last_ns - bar.first_ns;
  for (uint32_t depth = 0; depth < std::min<size_t>(node.cells.size(), kRows); ++depth) {
    const LodCell& cell = node.cells[depth];
    if (cell.covered == 0 && cell.begun == 0) continue;
    bar.depth = depth;
    bar.slot = cell.slot;
    bar.calls = cell.begun;
    bar.covered_ns = std::min(shown_ns, part_of(node_ns, cell.covered));
    Row& row = this->row(depth);
    // One call that continues over the nodes.
    CallBar* const before = row.has_pending    ? &row.pending
                            : row.bars.empty() ? nullptr
                                               : &row.bars.back();
    const bool goes_on = before != nullptr && cell.begun == 0 && before->slot == cell.slot &&
                         before->last_ns == bar.first_ns && before->calls <= 1;
    if (!goes_on) {
      if (cell.begun == 0 && cell.covered >= kNearlyWhole) {
        flush(row);
        row.bars.push_back(bar);
      } else {
        add(bar);
      }
      continue;
    }
    flush(row);
    CallBar& longer = row.bars.back();
    const bool ends_here = cell.covered < kNearlyWhole;
    longer.last_ns = ends_here ? bar.first_ns + bar.covered_ns : bar.last_ns;
    longer.covered_ns += bar.covered_ns;
  }
}

Result<uint64_t> events_in(const LodReader& lod, const Window& window) {
  if (!lod.times_ascend()) return lod.source().events;
  const auto first = lod.leaf_before(window.first_ns);
  if (!first.ok()) return first.error();
  const auto last = window.last_ns == std::numeric_limits<uint64_t>::max()
                        ? Result<std::optional<uint64_t>>(lod.size(0))
                        : lod.leaf_before(window.last_ns + 1);
  if (!last.ok()) return last.error();
  const uint64_t leaves = last->value_or(0) + 1 - first->value_or(0);
  return std::min(lod.source().events, leaves * lod.leaf_events());
}

}  // namespace collect::calls
