#include "formats/calls/lod/lod_builder.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "formats/calls/lod/lod_summary.h"
#include "formats/core/crc32.h"

namespace collect::calls {
namespace {

Bytes bytes_of(const LodNode& node) {
  return {reinterpret_cast<const uint8_t*>(&node), sizeof node};
}

uint16_t share_of(uint64_t part_ns, uint64_t whole_ns) {
  if (whole_ns == 0) return 0;
  const double share = static_cast<double>(part_ns) / static_cast<double>(whole_ns);
  return static_cast<uint16_t>(std::min(share, 1.0) * kLodWhole + 0.5);
}

uint32_t bounded(uint64_t count) {
  return static_cast<uint32_t>(std::min<uint64_t>(count, std::numeric_limits<uint32_t>::max()));
}

template <class T>
void append(std::vector<uint8_t>& to, T value) {
  const size_t at = to.size();
  to.resize(at + sizeof value);
  store_le(to.data() + at, value);
}

void seal(LodNode& node, Bytes data) {
  node.data_checksum = crc32c(data);
  node.checksum = crc32c(bytes_of(node).first(offsetof(LodNode, checksum)));
}

}  // namespace

void LodBuilder::put(Bytes bytes) {
  if (written_.ok()) written_ = body_.write(bytes);
  offset_ += bytes.size();
}

void LodBuilder::begin_leaf(uint64_t seq, uint64_t first_ns, uint64_t last_ns, bool can_resume) {
  if (has_leaf_) {
    end_leaf(first_ns);
  } else {
    first_ns_ = first_ns;
  }
  if (first_ns < last_ns_) step_back();
  last_ns_ = std::max(last_ns_, last_ns);
  has_leaf_ = true;
  leaf_flags_ = can_resume ? 0 : kLodNoResume;
  leaf_seq_ = seq;
  leaf_first_ns_ = first_ns;
  least_depth_ = static_cast<uint32_t>(open_.size());
}

void LodBuilder::end_leaf(uint64_t end_ns) {
  const size_t open_rows = std::min<size_t>(open_.size(), kLodRows);
  for (uint32_t depth = 0; depth < open_rows; ++depth) {
    add_piece(depth, open_[depth].slot, open_[depth].begin_ns, end_ns);
  }
  Joined leaf{leaf_first_ns_,
              std::max(end_ns, leaf_first_ns_),
              least_depth_,
              static_cast<uint32_t>(open_.size()),
              {}};
  leaf.pieces.assign(pieces_.begin(), pieces_.begin() + rows_);
  std::fill(pieces_.begin(), pieces_.begin() + rows_, Piece{});
  rows_ = 0;

  LodNode node;
  std::vector<uint8_t> data = cells_of(leaf);
  node.cells = static_cast<uint8_t>(leaf.pieces.size());
  for (size_t depth = least_depth_; depth < open_.size(); ++depth) {
    append(data, static_cast<uint16_t>(open_[depth].seq - leaf_seq_));
  }
  node.first_ns = leaf.first_ns;
  node.data_offset = offset_;
  node.least_depth = leaf.least_depth;
  node.end_depth = leaf.end_depth;
  node.opened = leaf.end_depth - leaf.least_depth;
  node.flags = leaf_flags_;
  seal(node, data);
  leaves_.push_back(node);
  put(data);
  add_to_level(0, std::move(leaf));
}

std::vector<uint8_t> LodBuilder::cells_of(const Joined& node) {
  std::vector<uint8_t> cells;
  const uint64_t whole_ns = node.end_ns - node.first_ns;
  for (const Piece& piece : node.pieces) {
    append(cells, piece.slot);
    append(cells, bounded(piece.begun));
    append(cells, share_of(piece.covered_ns, whole_ns));
    append(cells, share_of(piece.main_ns, whole_ns));
  }
  return cells;
}

void LodBuilder::add_to_level(size_t level, Joined node) {
  if (level == levels_.size()) levels_.emplace_back();
  levels_[level].pending.push_back(std::move(node));
  if (levels_[level].pending.size() == kLodFanOut) join(level);
}

// What is pending on this level becomes one node of it.
void LodBuilder::join(size_t level) {
  const std::vector<Joined> parts = std::exchange(levels_[level].pending, {});
  Joined node{parts.front().first_ns,
              parts.back().end_ns,
              parts.front().least_depth,
              parts.back().end_depth,
              {}};
  size_t rows = 0;
  for (const Joined& part : parts) {
    node.least_depth = std::min(node.least_depth, part.least_depth);
    rows = std::max(rows, part.pieces.size());
  }
  for (size_t depth = 0; depth < rows; ++depth) {
    Piece whole;
    for (const Joined& part : parts) {
      if (depth >= part.pieces.size()) continue;
      whole.covered_ns += part.pieces[depth].covered_ns;
      whole.begun += part.pieces[depth].begun;
      uint64_t main_ns = 0;  // of this part's function in all of them
      for (const Joined& other : parts) {
        if (depth >= other.pieces.size()) continue;
        if (other.pieces[depth].slot == part.pieces[depth].slot)
          main_ns += other.pieces[depth].main_ns;
      }
      if (main_ns <= whole.main_ns) continue;
      whole.main_ns = main_ns;
      whole.slot = part.pieces[depth].slot;
    }
    node.pieces.push_back(whole);
  }
  LodNode made;
  made.first_ns = node.first_ns;
  made.data_offset = levels_[level].data.size();
  made.least_depth = node.least_depth;
  made.end_depth = node.end_depth;
  made.cells = static_cast<uint8_t>(node.pieces.size());
  const std::vector<uint8_t> cells = cells_of(node);
  levels_[level].data.insert(levels_[level].data.end(), cells.begin(), cells.end());
  levels_[level].nodes.push_back(made);
  add_to_level(level + 1, std::move(node));
}

Result<std::vector<uint8_t>> LodBuilder::finish(const LodSource& source,
                                                const LodSummary& summary) {
  if (has_leaf_) end_leaf(last_ns_);
  // The last node of each level joins fewer; the top has one.
  for (size_t level = 0; level < levels_.size(); ++level) {
    const size_t below = level == 0 ? leaves_.size() : levels_[level - 1].nodes.size();
    if (below <= 1) {
      levels_.resize(level);
      break;
    }
    if (!levels_[level].pending.empty()) join(level);
  }
  return put_file(source, summary);
}

Result<std::vector<uint8_t>> LodBuilder::put_file(const LodSource& source,
                                                  const LodSummary& summary) {
  for (Level& level : levels_) {
    const uint64_t begin = offset_;
    for (LodNode& node : level.nodes) {
      const Bytes data(level.data.data() + node.data_offset, node.cells * kLodCellBytes);
      node.data_offset += begin;
      seal(node, data);
    }
    put(level.data);
  }
  const uint64_t nodes_offset = offset_;
  for (const LodNode& node : leaves_) put(bytes_of(node));
  for (const Level& level : levels_) {
    for (const LodNode& node : level.nodes) put(bytes_of(node));
  }
  const uint64_t summary_offset = offset_;
  const std::vector<uint8_t> text = encode_lod_summary(summary);
  put(text);
  if (!written_.ok()) return written_.error();

  std::vector<uint8_t> header(kLodHeaderBytes);
  ByteWriter out(header);
  out.bytes(kLodMagic);
  out.u32(kLodVersion);
  out.u32(leaf_events_);
  out.u32(ascends_ ? kLodTimesAscend : 0);
  out.u64(source.events);
  out.u32(source.section_checksum);
  out.u32(source.edges_checksum);
  out.u32(source.context_checksum);
  out.u32(static_cast<uint32_t>(levels_.size() + (leaves_.empty() ? 0 : 1)));
  out.u64(first_ns_);
  out.u64(last_ns_);
  out.u64(nodes_offset);
  out.u64(summary_offset);
  out.u64(offset_);
  out.u32(crc32c(text));
  out.zeros(kLodHeaderBytes - 4 - out.offset());
  out.u32(crc32c(Bytes(header).first(kLodHeaderBytes - 4)));
  return header;
}

}  // namespace collect::calls
