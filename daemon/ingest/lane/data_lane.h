// The data of one connection on its way into a session. A lane works in turns: one thread reads
// what has come, decodes it, checks it and stores it, while it is in that processor's cache.
//
//   io thread:    waits for the socket, begins and ends recordings, asks for the next turn
//   data thread:  a turn, as a task of the session's SessionQueue, which commits and reports it
//
// While no session takes the data, a turn runs on the io thread: there is nothing to store.
//
// The two follow one another: during a turn the io thread leaves link, decoder and unread bytes
// alone, and what it wants with the link waits for the turn's end.
#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "daemon/ingest/link/limits.h"
#include "daemon/ingest/link/link.h"
#include "daemon/ingest/link/verdict.h"
#include "daemon/ingest/session/lane_buffers.h"
#include "daemon/ingest/session/session_queue.h"

namespace collect::ingest {

// What a turn came to.
struct LaneTurn {
  enum class End : uint8_t {
    kMore,     // there may be more to read
    kEmpty,    // the socket is empty
    kFrame,    // one for the owner
    kFault,    // bytes that must not come
    kClosed,   // the peer ended the stream, or the socket failed
    kDropped,  // the session stores nothing more
  };
  End end = End::kMore;
  wire::FrameType frame_type{};     // of kFrame
  std::vector<uint8_t> frame_body;  // of kFrame
  Refusal fault;                    // of kFault
  std::error_code error;            // of kClosed
  size_t received_bytes = 0;
  size_t stored_bytes = 0;  // as records: an encoded page may be a hundred times longer
  uint32_t frames = 0;      // that are no pages

  // It has had its share. Each frame may open a stream, and the owner is asked between turns
  // whether there may be more.
  bool is_full() const { return stored_bytes >= kStoreTurnBytes || frames >= kFramesPerTurn; }
};

// Decodes the bytes of one connection and stores what they hold. Used within a turn; by the lane's
// owner between turns.
class LaneDecoder {
 public:
  virtual ~LaneDecoder() = default;
  // The next bytes; `taken` are done with, also after an error; the others come again with more
  // behind them, or nothing comes. Without a session nothing is stored.
  virtual Status take(Bytes bytes, StoredSession* session, PageUnpacker& unpacker, LaneTurn& turn,
                      size_t& taken) = 0;
  // Part of a frame was taken.
  virtual bool in_frame() const = 0;
};

// Called on the io thread, between turns.
class LaneOwner {
 public:
  virtual ~LaneOwner() = default;
  // False: reading is over.
  virtual bool on_data_frame(const wire::Frame& frame) = 0;
  // Reading is over.
  virtual void on_data_fault(const Refusal& fault) = 0;
  virtual void on_data_end(const std::error_code& error) = 0;
  // Asked before every turn: how long to wait before it; 0: not at all.
  virtual std::chrono::nanoseconds read_wait() = 0;
};

class DataLane : public std::enable_shared_from_this<DataLane> {
 public:
  DataLane(asio::io_context& io, std::shared_ptr<Link> link, std::shared_ptr<LaneOwner> owner,
           std::shared_ptr<LaneDecoder> decoder, LaneBuffers& buffers, IngestCounters& counters);

  Link& link() { return *link_; }  // not while it is read
  void start();
  // Where the data goes from the next turn on; null: nowhere.
  void store_into(std::shared_ptr<SessionQueue> session) { session_ = std::move(session); }
  void read_now();  // what has come, without waiting; only what no session takes
  // Nothing more reaches the owner. `last` is called with the link as soon as no turn is under way:
  // at once or later.
  void end(std::function<void(Link&)> last);
  // Every sweep. False: a frame has been standing half-read for longer than kFrameStall.
  bool check_idle(std::chrono::steady_clock::time_point now);
  // It stops because its owner wanted it to wait.
  bool held() const { return state_ == State::kHeld; }

 private:
  enum class State : uint8_t { kNew, kSending, kWaiting, kTurn, kDelivering, kHeld, kEnded };

  void begin_turn_later();
  void take_step(void (DataLane::*step)());
  void begin_turn();
  void wait_readable();
  void read_without_session();
  void on_turn();
  void finish_turn();
  bool deliver(const LaneTurn& turn);
  // Within a turn.
  Status turn(StoredSession* session);
  bool fill(uint8_t* bytes, size_t& end);

  asio::io_context& io_;
  const std::shared_ptr<LaneDecoder> decoder_;
  LaneBuffers& buffers_;
  IngestCounters& counters_;
  std::atomic<bool> stop_{false};  // the turn is to end soon

  // io thread; the link within a turn is the turn's
  const std::shared_ptr<Link> link_;
  std::shared_ptr<LaneOwner> owner_;
  std::shared_ptr<SessionQueue> session_;
  State state_ = State::kNew;
  std::function<void(Link&)> last_;
  asio::steady_timer wait_timer_;
  std::chrono::steady_clock::time_point last_read_{};

  // the turn's; between turns the io thread's
  std::vector<uint8_t> unread_;
  std::error_code read_error_;  // there is nothing more to read
  LaneTurn turn_;
};

}  // namespace collect::ingest
