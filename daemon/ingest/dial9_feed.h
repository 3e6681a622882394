// One connection that sends a dial9 stream and nothing else, as a tokio service's recorder or `nc`
// does, and the session that the stream becomes. Whole frames are stored, up to the stream's end or
// to the first byte that is not dial9.
//
// Belongs to one io thread: connection, timers and reports all run there. Bytes are checked in the
// pooled buffer that they were read into, and go to the writer as a share of it; only a frame that
// a buffer's end cuts is copied. The peer is told nothing, since dial9 has no way back: its
// connection ends, and manifest and log say why.
#pragma once

#include <asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/ingest/core.h"
#include "daemon/ingest/link.h"
#include "formats/dial9/stream_decoder.h"

namespace collect::ingest {

class Dial9Feed : public std::enable_shared_from_this<Dial9Feed> {
 public:
  // The link is open and nobody reads it; its early bytes begin with the header.
  Dial9Feed(IngestCore& core, asio::io_context& io, std::shared_ptr<Link> link);
  ~Dial9Feed();

  void start();
  // Time passes. False: the session is sealed, this feed may be forgotten.
  bool sweep(std::chrono::steady_clock::time_point now);
  // Ends the stream behind its last whole frame. Answers when it is sealed.
  void stop(std::function<void(Result<SessionSnapshot>)> done);
  void shut_down();
  bool has_session(const std::string& name) const { return opened_ && shown_.name == name; }

 private:
  enum class State : uint8_t { kReading, kWaiting, kHeld, kNoBuffer, kOver };

  // The stream
  void read_turn();
  void wait_readable();
  void resume();
  bool ensure_buffer();
  bool take(Bytes fresh);
  void hand_on();
  void leave_buffer();
  void let_go_of_buffer();
  void on_stream_end(const std::error_code& error);
  void end(storage::SessionState state, const std::string& reason, const std::string& problem);

  // The session
  void open_session();
  void put(SessionItem item);
  void on_report(SessionReport report);
  void on_sealed(const SessionReport::Sealed& sealed);
  void show(bool now);

  IngestCore& core_;
  asio::io_context& io_;
  const std::shared_ptr<Link> link_;
  State state_ = State::kReading;

  // Places in the stream: handed_ <= base_ + end_ == received_. What lies between handed_ and the
  // buffer is in front_.
  dial9::StreamDecoder decoder_;
  BufferRef buffer_;
  uint64_t base_ = 0;           // of the buffer's first byte
  size_t end_ = 0;              // of what was read into the buffer
  uint64_t received_ = 0;       // bytes of the stream
  uint64_t handed_ = 0;         // up to here it went to the writer
  std::vector<uint8_t> front_;  // begin of a frame that went on behind its buffer
  std::chrono::steady_clock::time_point last_read_{};

  SessionSnapshot shown_;
  std::shared_ptr<SessionPipe> pipe_;
  bool opened_ = false;   // it has a name; before that nobody is told of it
  bool sealed_ = false;   // or never begun
  bool unshown_ = false;  // counters changed since `shown_at_`
  std::chrono::steady_clock::time_point shown_at_{};
  std::chrono::steady_clock::time_point put_at_{};      // something went into the pipe
  std::chrono::steady_clock::time_point settled_at_{};  // the last commit for its own sake
  std::vector<std::function<void(Result<SessionSnapshot>)>> when_sealed_;
};

}  // namespace collect::ingest
