// Makes index.lod of a thread, as a sink of ThreadCalls: LOD.md. Function totals, call tree and
// nodes come out of one pass over the events, which build_lod() makes.
//
// Used on one thread. Memory: 40 bytes for each 4,096 events, an eighth of the cells, and what
// totals and tree take. The cells of leaves leave it while the events are read.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "formats/calls/call_tree.h"
#include "formats/calls/lod/lod_layout.h"
#include "formats/calls/read_thread.h"
#include "formats/calls/sinks.h"
#include "formats/core/byte_sink.h"
#include "formats/core/result.h"

namespace collect::calls {

class LodBuilder : public CallSink {
 public:
  // The bytes of the file in order, but for the header, which is before them and is known last.
  // `body` outlives it. 1 <= leaf_events <= kMaxLeafEvents.
  explicit LodBuilder(ByteSink& body, uint32_t leaf_events = kLodLeafEvents)
      : body_(body), leaf_events_(leaf_events) {}

  uint32_t leaf_events() const { return leaf_events_; }

  // Before the event `seq`, where a leaf begins; `last_ns` is the latest time in it.
  void begin_leaf(uint64_t seq, uint64_t first_ns, uint64_t last_ns, bool can_resume);
  void step_back() { ascends_ = false; }  // of a time
  void on_call_begin(const Call& call) {
    open_.push_back({call.begin.ns, call.begin.seq, call.slot});
    if (call.depth < kLodRows) ++pieces_[call.depth].begun;
  }
  void on_call_end(const EndedCall& call) {
    open_.pop_back();
    if (call.depth < least_depth_) least_depth_ = call.depth;
    if (call.depth < kLodRows) add_piece(call.depth, call.slot, call.begin.ns, call.end.ns);
  }

  // Behind the last event; `summary` is of the same pass. The header, kLodHeaderBytes.
  Result<std::vector<uint8_t>> finish(const LodSource& source, const LodSummary& summary);

 private:
  struct Open {
    uint64_t begin_ns = 0;
    uint64_t seq = 0;
    uint32_t slot = 0;
  };
  struct Piece {  // of one depth, in a node
    uint64_t covered_ns = 0;
    uint64_t main_ns = 0;
    uint64_t begun = 0;
    uint32_t slot = 0;
  };
  struct Joined {  // a node whose time is over
    uint64_t first_ns = 0;
    uint64_t end_ns = 0;
    uint32_t least_depth = 0;
    uint32_t end_depth = 0;
    std::vector<Piece> pieces;
  };
  struct Level {
    std::vector<LodNode> nodes;  // of upper levels, `data_offset` within `data` as yet
    std::vector<uint8_t> data;
    std::vector<Joined> pending;  // of the level below, that the next node joins
  };

  void add_piece(uint32_t depth, uint32_t slot, uint64_t begin_ns, uint64_t end_ns) {
    const uint64_t from = begin_ns > leaf_first_ns_ ? begin_ns : leaf_first_ns_;
    const uint64_t length = end_ns > from ? end_ns - from : 0;
    Piece& piece = pieces_[depth];
    piece.covered_ns += length;
    if (depth >= rows_) rows_ = depth + 1;
    if (length < piece.main_ns) return;
    piece.main_ns = length;
    piece.slot = slot;
  }
  void end_leaf(uint64_t end_ns);
  static std::vector<uint8_t> cells_of(const Joined& node);
  void add_to_level(size_t level, Joined node);
  void join(size_t level);
  Result<std::vector<uint8_t>> put_file(const LodSource& source, const LodSummary& summary);
  void put(Bytes bytes);

  ByteSink& body_;
  const uint32_t leaf_events_;
  Status written_;
  uint64_t offset_ = kLodHeaderBytes;
  std::vector<Open> open_;
  std::array<Piece, kLodRows> pieces_{};  // of the leaf
  uint32_t rows_ = 0;                     // of them, with time
  bool has_leaf_ = false;
  uint8_t leaf_flags_ = 0;
  uint64_t leaf_seq_ = 0;
  uint64_t leaf_first_ns_ = 0;
  uint32_t least_depth_ = 0;
  uint64_t first_ns_ = 0;
  uint64_t last_ns_ = 0;
  bool ascends_ = true;
  std::vector<LodNode> leaves_;
  std::vector<Level> levels_;  // above the leaves
};

// One pass over the thread; `more` is a further sink of it. `reader` as atf::IndexReader.
template <class Reader, class More>
Result<std::vector<uint8_t>> build_lod(const Reader& reader, const std::vector<Gap>& gaps,
                                       const std::vector<Stall>& stalls, const LodSource& source,
                                       LodBuilder& builder, LodSummary& summary, More& more) {
  CallTree tree;
  Sinks sinks(summary.totals, tree, builder, more);
  ThreadCalls calls(summary.slots, sinks, stalls);
  ReadSteps steps;
  steps.step_events = builder.leaf_events();
  steps.before_step = [&](uint64_t seq, const OpenCalls& open) {
    const uint64_t end = std::min(reader.size(), seq + builder.leaf_events());
    const uint64_t first_ns = reader.time_of(seq);
    uint64_t last_ns = first_ns;
    for (uint64_t i = seq; i < end; ++i) {
      const uint64_t ns = reader.time_of(i);
      if (ns < last_ns) builder.step_back();
      last_ns = std::max(last_ns, ns);
    }
    builder.begin_leaf(seq, first_ns, last_ns, open.depth() == open.timed_depth());
  };
  steps.after_gap = [&](GapOutcome outcome) { summary.gaps.push_back(outcome); };
  read_thread(reader, gaps, calls, steps);
  summary.counts = calls.counts();
  summary.paths = path_tree(tree, kMaxLodPaths);
  return builder.finish(source, summary);
}

}  // namespace collect::calls
