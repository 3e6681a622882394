// The frames of one agent's data channel: pages go into the session, everything else to the lane's
// owner. WIRE.md "Pages".
//
// Used within a turn of its DataLane; by the Peer between turns, which says which streams are open.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "daemon/ingest/lane/data_lane.h"
#include "formats/core/keyed_hash.h"

namespace collect::ingest {

class AgentDecoder final : public LaneDecoder {
 public:
  // `features`: wire::Feature, as agreed on.
  AgentDecoder(uint64_t features, IngestCounters& counters)
      : features_(features), counters_(counters) {}

  Status take(Bytes bytes, StoredSession* session, PageUnpacker& unpacker, LaneTurn& turn,
              size_t& taken) override;
  bool in_frame() const override { return false; }  // those bytes are not taken

  // ---- between turns
  void open_stream(uint32_t id) { next_.try_emplace(id); }
  void close_stream(uint32_t id) { next_.erase(id); }
  void close_all_streams() { next_.clear(); }
  // The number behind the last record of the lane that came on this connection.
  uint64_t next_seq(uint32_t stream, Lane lane) const;

 private:
  struct Next {
    uint64_t of[2] = {0, 0};  // by lane
  };

  // The pages at the front of `bytes`, into pages_; how many bytes they are.
  size_t decode_pages(Bytes bytes, LaneTurn& turn);
  std::string fault_of(const Page& page);
  static size_t pass_on_frames(Bytes bytes, LaneTurn& turn);

  const uint64_t features_;
  IngestCounters& counters_;
  std::unordered_map<uint32_t, Next, KeyedHash> next_;  // of the streams that are open
  std::vector<Page> pages_;
  size_t checked_bytes_ = 0;  // at the front of the next bytes: they were taken and could not be
                              // stored yet
};

}  // namespace collect::ingest
