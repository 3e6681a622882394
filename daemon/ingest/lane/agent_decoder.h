// The frames of one agent's data channel, in their order: pages and what explains them go into the
// session; the beginning and the end of a recording, and a refusal, go to the lane's owner. WIRE.md
// "Pages".
//
// Used within a turn of its DataLane; by the Peer between turns.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/ingest/lane/data_frames.h"
#include "daemon/ingest/lane/data_lane.h"

namespace collect::ingest {

class AgentDecoder final : public LaneDecoder {
 public:
  // `features`: wire::Feature, as agreed on. The rest as DataFrames has it.
  AgentDecoder(uint64_t features, IngestCounters& counters, uint32_t most_threads,
               std::shared_ptr<principal::Account> account, std::shared_ptr<LoadedModules> modules)
      : features_(features),
        counters_(counters),
        frames_(most_threads, std::move(account), std::move(modules)) {}

  Status take(Bytes bytes, StoredSession* session, PageUnpacker& unpacker, LaneTurn& turn,
              size_t& taken) override;
  bool in_frame() const override { return false; }  // those bytes are not taken

  // As DataFrames.
  void begin_recording(uint32_t recording) { frames_.begin_recording(recording); }
  std::vector<storage::ThreadIdentity> threads() const { return frames_.threads(); }

 private:
  // The pages at the front of `bytes`, into pages_.
  struct Run {
    size_t bytes = 0;
    size_t records_bytes = 0;
    // What comes behind them:
    std::string fault;
    std::optional<wire::Frame> frame;  // that is no page
  };
  Run decode_pages(Bytes bytes, size_t room);
  std::string fault_of(const Page& page);
  void take_frame(const wire::Frame& frame, StoredSession* session, LaneTurn& turn);

  const uint64_t features_;
  IngestCounters& counters_;
  DataFrames frames_;
  std::vector<Page> pages_;
  size_t checked_bytes_ = 0;  // at the front of the next bytes: these pages could not be stored yet
};

}  // namespace collect::ingest
