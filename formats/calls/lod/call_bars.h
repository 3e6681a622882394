// What is drawn of a thread in a window of time: a bar for each call that is wide enough, and one
// for several calls in the same column. Bars come from calls, as a sink of ThreadCalls, or
// from the nodes of index.lod where the calls would be too many to read.
//
// Used on one thread. Memory: at most 2 bars for each column and depth.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/calls/call.h"
#include "formats/calls/lod/lod_reader.h"

namespace collect::calls {

struct CallBar {
  uint64_t first_ns = 0;  // in the window
  uint64_t last_ns = 0;
  uint64_t covered_ns = 0;  // of this, in calls
  uint64_t calls = 0;       // that began here; of several, `slot` has the most time
  uint32_t slot = 0;
  uint32_t depth = 0;
  // One call, whole or as far as it is in the window; what follows is of it.
  bool is_call = false;
  bool is_whole = false;  // `total_ns` and `self_ns` are of all of it
  EndReason reason{};
  Moment begin;  // which may be before the window
  uint64_t detail_seq_of_end = atf::kNoDetail;
  uint64_t total_ns = 0;
  uint64_t self_ns = 0;
};

class CallBars : public CallSink {
 public:
  static constexpr uint32_t kRows = 1024;  // deeper calls are counted

  // window.first_ns <= window.last_ns, both known; columns != 0.
  CallBars(const Window& window, uint32_t columns)
      : window_(window), column_ns_((window.last_ns - window.first_ns) / columns + 1) {}

  void on_call_end(const EndedCall& call);

  // The nodes that show the window best. kDamaged: the file cannot be used.
  Status add(const LodReader& lod);

  // By depth and time. Once.
  std::vector<CallBar> take();
  uint64_t deeper_calls() const { return deeper_; }

 private:
  struct Row {
    std::vector<CallBar> bars;
    CallBar pending;  // of several calls in one column
    uint64_t longest_ns = 0;
    bool has_pending = false;
  };

  Status visit(const LodReader& lod, size_t level, uint64_t number);
  void add_node(const LodReader::Node& node);
  void add(CallBar bar);
  Row& row(uint32_t depth);
  static void flush(Row& row);
  uint64_t column_of(uint64_t ns) const { return (ns - window_.first_ns) / column_ns_; }

  const Window window_;
  const uint64_t column_ns_;
  std::vector<Row> rows_;  // as many as there are depths
  uint64_t deeper_ = 0;
};

// How many events are in the leaves of the window, about.
Result<uint64_t> events_in(const LodReader& lod, const Window& window);

}  // namespace collect::calls
