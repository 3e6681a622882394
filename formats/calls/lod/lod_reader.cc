#include "formats/calls/lod/lod_reader.h"

#include <fmt/core.h>

#include <algorithm>

#include "formats/calls/lod/lod_summary.h"
#include "formats/core/crc32.h"

namespace collect::calls {
namespace {

Error damaged(uint64_t offset, const char* what) {
  return {Code::kDamaged, fmt::format("offset {}: {}", offset, what)};
}

}  // namespace

Result<LodReader> LodReader::open(Bytes file) {
  if (file.size() < kLodHeaderBytes) return Error{Code::kTruncated, "shorter than its header"};
  ByteReader in(file.first(kLodHeaderBytes));
  const Bytes magic = in.bytes(sizeof kLodMagic);
  if (!std::equal(magic.begin(), magic.end(), std::begin(kLodMagic))) {
    return damaged(0, "the magic is another");
  }
  if (crc32c(file.first(kLodHeaderBytes - 4)) !=
      load_le<uint32_t>(file.data() + kLodHeaderBytes - 4)) {
    return damaged(0, "the header's checksum is wrong");
  }
  if (const uint32_t version = in.u32(); version != kLodVersion) {
    return Error{Code::kUnsupported, fmt::format("version {}", version)};
  }
  LodReader reader;
  reader.file_ = file;
  reader.leaf_events_ = in.u32();
  reader.times_ascend_ = (in.u32() & kLodTimesAscend) != 0;
  reader.source_.events = in.u64();
  reader.source_.section_checksum = in.u32();
  reader.source_.edges_checksum = in.u32();
  reader.source_.context_checksum = in.u32();
  const uint32_t levels = in.u32();
  reader.first_ns_ = in.u64();
  reader.last_ns_ = in.u64();
  reader.nodes_offset_ = in.u64();
  reader.summary_offset_ = in.u64();
  const uint64_t file_bytes = in.u64();
  reader.summary_checksum_ = in.u32();
  if (reader.leaf_events_ == 0 || reader.leaf_events_ > kMaxLeafEvents) {
    return damaged(8, "a leaf has no or too many events");
  }
  if (file.size() < file_bytes) return Error{Code::kTruncated, "the file ends before its end"};
  if (file.size() != file_bytes) return damaged(file_bytes, "bytes behind the end");
  COLLECT_TRY(reader.find_levels(levels, reader.nodes_offset_));
  return reader;
}

Status LodReader::find_levels(uint32_t levels, uint64_t nodes_offset) {
  if (nodes_offset < kLodHeaderBytes || nodes_offset > summary_offset_ ||
      summary_offset_ > file_.size()) {
    return damaged(64, "the parts of the file are out of order");
  }
  uint64_t count = source_.events / leaf_events_ + (source_.events % leaf_events_ != 0 ? 1 : 0);
  uint64_t offset = nodes_offset;
  while (count != 0) {
    if (levels_.size() == kMaxLodLevels || count > (summary_offset_ - offset) / kLodNodeBytes) {
      return damaged(16, "more nodes than the file has");
    }
    levels_.push_back({offset, count});
    offset += count * kLodNodeBytes;
    if (count == 1) break;
    count = count / kLodFanOut + (count % kLodFanOut != 0 ? 1 : 0);
  }
  if (offset != summary_offset_ || levels_.size() != levels) {
    return damaged(36, "other levels than the events make");
  }
  return {};
}

Result<LodNode> LodReader::node_of(size_t level, uint64_t number) const {
  const uint64_t offset = levels_[level].offset + number * kLodNodeBytes;
  const auto node = load_le<LodNode>(file_.data() + offset);
  if (crc32c(file_.subspan(offset, offsetof(LodNode, checksum))) != node.checksum) {
    return damaged(offset, "the checksum of a node is wrong");
  }
  return node;
}

Result<uint64_t> LodReader::first_ns(size_t level, uint64_t number) const {
  const auto node = node_of(level, number);
  if (!node.ok()) return node.error();
  return node->first_ns;
}

Status LodReader::read(size_t level, uint64_t number, Node& node) const {
  const uint64_t offset = levels_[level].offset + number * kLodNodeBytes;
  const auto read = node_of(level, number);
  if (!read.ok()) return read.error();
  const uint64_t bytes =
      uint64_t{read->cells} * kLodCellBytes + uint64_t{read->opened} * sizeof(uint16_t);
  if (read->data_offset < kLodHeaderBytes || read->data_offset > nodes_offset_ ||
      bytes > nodes_offset_ - read->data_offset || read->cells > kLodRows ||
      read->opened > (level == 0 ? leaf_events_ : 0)) {
    return damaged(offset, "a node that contradicts itself");
  }
  const Bytes data = file_.subspan(read->data_offset, bytes);
  if (crc32c(data) != read->data_checksum) {
    return damaged(read->data_offset, "the checksum of a node's data is wrong");
  }
  node.first_ns = read->first_ns;
  node.end_ns = last_ns_;
  if (number + 1 < size(level)) {
    const auto next_ns = first_ns(level, number + 1);
    if (!next_ns.ok()) return next_ns.error();
    node.end_ns = *next_ns;
  }
  node.least_depth = read->least_depth;
  node.end_depth = read->end_depth;
  node.can_resume = (read->flags & kLodNoResume) == 0;
  node.cells.resize(read->cells);
  ByteReader in(data);
  for (LodCell& cell : node.cells) cell = {in.u32(), in.u32(), in.u16(), in.u16()};
  node.opened.resize(read->opened);
  for (uint16_t& position : node.opened) position = in.u16();
  return {};
}

Result<std::unique_ptr<LodSummary>> LodReader::summary() const {
  const Bytes bytes = file_.subspan(summary_offset_);
  if (crc32c(bytes) != summary_checksum_) {
    return damaged(summary_offset_, "the summary's checksum is wrong");
  }
  return decode_lod_summary(bytes);
}

Result<std::optional<uint64_t>> LodReader::leaf_before(uint64_t ns) const {
  if (!times_ascend_ || levels_.empty()) return std::optional<uint64_t>();
  uint64_t low = 0;  // every leaf below begins before `ns`
  uint64_t high = size(0);
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    const auto begin_ns = first_ns(0, middle);
    if (!begin_ns.ok()) return begin_ns.error();
    if (*begin_ns < ns) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  for (; low > 1; --low) {  // the first leaf needs no help
    const auto node = node_of(0, low - 1);
    if (!node.ok()) return node.error();
    if ((node->flags & kLodNoResume) == 0) return std::optional(low - 1);
  }
  return std::optional<uint64_t>();
}

Result<std::vector<uint64_t>> LodReader::open_at(uint64_t leaf) const {
  std::vector<uint64_t> open;
  if (leaf == 0) return open;
  const auto before = node_of(0, leaf - 1);
  if (!before.ok()) return before.error();
  if (before->end_depth > OpenCalls::kMaxDepth) return damaged(0, "too many calls are open");
  open.resize(before->end_depth);
  // Each leaf before has those that it opened, of the ones that are still missing.
  size_t missing = open.size();
  Node node;
  for (uint64_t number = leaf; number-- != 0 && missing != 0;) {
    const auto peeked = node_of(0, number);
    if (!peeked.ok()) return peeked.error();
    if (peeked->least_depth >= missing) continue;
    COLLECT_TRY(read(0, number, node));
    if (node.least_depth + node.opened.size() < missing) {
      return damaged(levels_[0].offset + number * kLodNodeBytes, "an open call is missing");
    }
    for (; missing > node.least_depth; --missing) {
      const uint64_t position = node.opened[missing - 1 - node.least_depth];
      open[missing - 1] = number * leaf_events_ + position;
    }
  }
  if (missing != 0) return damaged(levels_[0].offset, "an open call is missing");
  if (!std::is_sorted(open.begin(), open.end()) ||
      (!open.empty() && open.back() >= leaf * leaf_events_)) {
    return damaged(levels_[0].offset, "the open calls are out of order");
  }
  return open;
}

Status LodReader::check() const {
  Node node;
  uint64_t data = kLodHeaderBytes;  // the nodes' data follow one another
  for (size_t level = 0; level < levels(); ++level) {
    for (uint64_t number = 0; number < size(level); ++number) {
      COLLECT_TRY(read(level, number, node));
      if (node_of(level, number)->data_offset != data) {
        return damaged(levels_[level].offset + number * kLodNodeBytes, "data in another place");
      }
      data += node.cells.size() * kLodCellBytes + node.opened.size() * sizeof(uint16_t);
    }
  }
  if (data != nodes_offset_) return damaged(data, "bytes that belong to nothing");
  const auto whole = summary();
  return whole.ok() ? Status() : whole.error();
}

}  // namespace collect::calls
