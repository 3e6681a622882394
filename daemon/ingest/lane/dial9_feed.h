// One connection that sends a dial9 stream and nothing else, as a tokio service's recorder or `nc`
// does, and the session that the stream becomes.
//
// Belongs to one io thread: connection, timers and reports all run there; its DataLane reads. The
// peer gets no reason, since dial9 has no way back: its connection ends, and manifest and log say
// why.
#pragma once

#include <asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/ingest/lane/data_lane.h"
#include "daemon/ingest/session/core.h"
#include "daemon/ingest/session/live_session.h"
#include "formats/dial9/read/stream_decoder.h"

namespace collect::ingest {

// The bytes of a dial9 stream: whole frames go into the session, up to the stream's end or to the
// first byte that is not dial9.
//
// Used within a turn of its DataLane; by the Dial9Feed between turns.
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
  // Offsets in the stream; what is between stored_ and the next bytes is in front_.
  uint64_t received_ = 0;
  uint64_t stored_ = 0;
  std::vector<uint8_t> front_;  // the beginning of a frame
  size_t decoded_bytes_ = 0;    // at the front of the next bytes: they could not be stored yet
};

class Dial9Feed final : public LaneOwner, public std::enable_shared_from_this<Dial9Feed> {
 public:
  // The link is open and no one reads it; its early bytes begin with the header.
  Dial9Feed(IngestCore& core, asio::io_context& io, std::shared_ptr<Link> link);
  ~Dial9Feed() override;

  void start();
  // Time passes. False: the session is sealed, this feed may be removed.
  bool sweep(SteadyTime now);
  // Ends the stream behind its last whole frame. Answers when it is sealed.
  void stop(Answer<SessionSnapshot> done);
  void shut_down();
  bool has_session(const std::string& name) const {
    return session_->opened && session_->shown.name == name;
  }

  // LaneOwner
  bool on_data_frame(const wire::Frame&) override { return true; }  // there are none
  void on_data_fault(const Refusal& fault) override;
  void on_data_end(const std::error_code& error) override;
  std::chrono::nanoseconds read_wait() override { return {}; }

 private:
  void end(storage::SessionState state, const std::string& reason, const std::string& problem);
  void on_report(const SessionReport& report);
  void on_sealed(const SessionReport::Sealed& sealed);

  IngestCore& core_;
  asio::io_context& io_;
  const std::string peer_;
  const principal::Principal principal_;
  std::shared_ptr<Link> link_;  // until start()
  const std::shared_ptr<FeedDecoder> decoder_;
  std::shared_ptr<DataLane> lane_;
  std::unique_ptr<LiveSession> session_;
  bool ended_ = false;
  bool sealed_ = false;
};

}  // namespace collect::ingest
