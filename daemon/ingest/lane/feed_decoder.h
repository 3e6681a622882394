// The bytes of a dial9 stream: whole frames go into the session, up to the stream's end or to the
// first byte that is not dial9.
//
// Used within a turn of its DataLane; by the Dial9Feed between turns.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "daemon/ingest/lane/data_lane.h"
#include "formats/dial9/stream_decoder.h"

namespace collect::ingest {

class FeedDecoder final : public LaneDecoder {
 public:
  FeedDecoder();

  Status take(Bytes bytes, StoredSession* session, PageUnpacker& unpacker, LaneTurn& turn,
              size_t& taken) override;
  bool in_frame() const override { return !decoder_.rest().empty(); }

  // ---- between turns
  uint64_t received_bytes() const { return received_; }
  uint64_t stored_bytes() const { return stored_; }
  // The stream has ended: what is wrong with its end, if anything.
  std::optional<std::string> finish();

 private:
  dial9::StreamDecoder decoder_;
  // Offsets in the stream; what lies between stored_ and the next bytes is in front_.
  uint64_t received_ = 0;
  uint64_t stored_ = 0;
  std::vector<uint8_t> front_;  // the beginning of a frame
  size_t decoded_bytes_ = 0;    // at the front of the next bytes: they could not be stored yet
};

}  // namespace collect::ingest
