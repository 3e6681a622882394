// Reads index.lod over bytes that the caller maps and keeps alive. LOD.md. Opening costs the header
// and the list of levels; each node is checked when it is read. Nothing is believed that its
// checksum does not cover, and no memory is taken for a number of the file.
//
// Const functions: any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "formats/calls/lod/lod_layout.h"
#include "formats/calls/read_thread.h"
#include "formats/core/bytes.h"
#include "formats/core/result.h"

namespace collect::calls {

class LodReader {
 public:
  // kTruncated, kDamaged: not such a file, or not all of it; kUnsupported: another version.
  static Result<LodReader> open(Bytes file);

  // Whether it is of this index file, as it is now.
  bool is_of(const LodSource& source) const { return source_ == source; }
  const LodSource& source() const { return source_; }

  uint64_t first_ns() const { return first_ns_; }
  uint64_t last_ns() const { return last_ns_; }
  uint32_t leaf_events() const { return leaf_events_; }
  // No time steps back: windows can be sought.
  bool times_ascend() const { return times_ascend_; }

  // Level 0 has the leaves, the last one a single node. There is none without events.
  size_t levels() const { return levels_.size(); }
  uint64_t size(size_t level) const { return levels_[level].count; }

  struct Node {
    uint64_t first_ns = 0;
    uint64_t end_ns = 0;  // first_ns of the next one on its level; of the last, last_ns()
    uint32_t least_depth = 0;
    uint32_t end_depth = 0;
    bool can_resume = true;
    std::vector<LodCell> cells;    // by depth
    std::vector<uint16_t> opened;  // of a leaf: positions of the calls still open behind it
  };
  // kDamaged: its checksum is wrong. `node` is filled again, and may be used again.
  Status read(size_t level, uint64_t number, Node& node) const;
  Result<uint64_t> first_ns(size_t level, uint64_t number) const;  // number < size(level)

  Result<std::unique_ptr<LodSummary>> summary() const;

  // The last leaf that begins before `ns` and from which pairing can continue; nullopt: the first
  // event has to be read.
  Result<std::optional<uint64_t>> leaf_before(uint64_t ns) const;
  // Numbers of the events of the calls that are open where this leaf begins, outermost first.
  Result<std::vector<uint64_t>> open_at(uint64_t leaf) const;

  // Reads everything: kDamaged where anything is wrong.
  Status check() const;

 private:
  struct Level {
    uint64_t offset = 0;  // of its nodes in the file
    uint64_t count = 0;
  };
  LodReader() = default;
  Status find_levels(uint32_t levels, uint64_t nodes_offset);
  // The node alone, with its checksum checked.
  Result<LodNode> node_of(size_t level, uint64_t number) const;

  Bytes file_;
  LodSource source_;
  uint32_t leaf_events_ = 0;
  bool times_ascend_ = false;
  uint64_t first_ns_ = 0;
  uint64_t last_ns_ = 0;
  uint64_t nodes_offset_ = 0;  // data is before it
  uint64_t summary_offset_ = 0;
  uint32_t summary_checksum_ = 0;
  std::vector<Level> levels_;
};

// As read_thread(), with the events that the window needs alone. `gaps` are those that the file was
// made with. kDamaged: the file cannot be used; nothing was read, and read_thread() still can.
template <class Reader, class Sink>
Status read_window(const Reader& reader, const std::vector<Gap>& gaps, const LodReader& lod,
                   const LodSummary& summary, const Window& window, ThreadCalls<Sink>& calls) {
  ReadSteps steps;
  if (summary.gaps.size() != gaps.size()) {
    return Error{Code::kDamaged, "the file was made with other gaps"};
  }
  const auto leaf = lod.leaf_before(window.first_ns);
  if (!leaf.ok()) return leaf.error();
  if (*leaf) {
    const auto open = lod.open_at(**leaf);
    if (!open.ok()) return open.error();
    steps.first_seq = **leaf * lod.leaf_events();
    if (steps.first_seq >= reader.size()) return Error{Code::kDamaged, "the file is of another"};
    steps.first_gap = resume_thread(reader, steps.first_seq, *open, gaps, summary.gaps, calls);
  }
  steps.outcomes = summary.gaps;
  read_thread(reader, gaps, calls, steps);
  return {};
}

}  // namespace collect::calls
