// The events that `dump` prints, in the order of printing, in blocks. What depends on the events
// before (depths, durations, where stalls and detail records belong) is worked out here, by one
// thread; blocks can then be printed by several (block_printer.h).
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "daemon/ctl/dump/event_dump.h"
#include "daemon/ctl/dump/event_text.h"

namespace collect::ctl {

inline constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();

struct DumpedEvent {
  size_t session = 0;
  size_t thread = 0;  // position
  uint64_t seq = 0;
  uint64_t time_ns = 0;  // on the time line, where there is one
  atf::IndexEvent event;
};

// Is before the event that has this position in the block.
struct DumpedStall {
  size_t before = 0;
  size_t session = 0;
  size_t thread = 0;  // position
  storage::Stall stall;
  uint64_t time_ns = 0;
  uint32_t depth = 0;
};

// Belongs to the event that has this position in the block.
struct DumpedRecord {
  size_t of = 0;
  atf::DetailRecord record;
};

struct DumpBlock {
  static constexpr size_t kEvents = 4096;

  // For a block by thread: its session and thread. It may be the first, and without events.
  size_t session = 0;
  size_t thread = 0;
  bool begins_session = false;
  bool begins_thread = false;
  const atf::IndexReader* index = nullptr;  // null: `merged` has the events
  uint64_t first_seq = 0;
  size_t events = 0;

  std::vector<DumpedEvent> merged;
  std::vector<CallLocation> places;  // of each event; of text only
  std::vector<DumpedStall> stalls;
  std::vector<DumpedRecord> records;

  DumpedEvent event(size_t i) const {
    if (index == nullptr) return merged[i];
    DumpedEvent event{session, thread, first_seq + i, 0, index->event(first_seq + i)};
    event.time_ns = event.event.timestamp_ns;  // only merged sessions are put on a time line
    return event;
  }
};

// Thread after thread, or merged, as the options say. The sessions outlive it.
class DumpBlocks {
 public:
  DumpBlocks(const DumpOptions& options,
             const std::vector<std::unique_ptr<DumpedSession>>& sessions);
  ~DumpBlocks();

  uint64_t events() const;  // of all sessions
  // False: there is none left. `block` may have been used before.
  bool next(DumpBlock& block);

 private:
  class Source;  // one session

  bool next_of_threads(DumpBlock& block);
  bool next_merged(DumpBlock& block);
  size_t block_events();

  const DumpOptions& options_;
  const std::vector<std::unique_ptr<DumpedSession>>& sessions_;
  std::vector<std::unique_ptr<Source>> sources_;
  size_t session_ = 0;     // by thread: the next block's
  bool is_ended_ = false;  // merged
  size_t grown_ = 64;      // the first blocks are small: who reads ten lines waits for no more
};

}  // namespace collect::ctl
