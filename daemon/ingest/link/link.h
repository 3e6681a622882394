// One connected socket that carries frames: sends them, reads control frames, ends with a reason.
// What comes on the data channel is read by a DataLane.
//
// Belongs to one io thread: everything is called there; within a turn of its DataLane nothing is.
// The owner is held until the link ended, and is informed of the end exactly once, unless it closed
// the link itself.
#pragma once

#include <google/protobuf/message_lite.h>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/ingest/link/byte_stream.h"
#include "daemon/principal/principal.h"
#include "proto/wire/frame_decoder.h"
#include "proto/wire/wire.pb.h"

namespace collect::ingest {

class Link;

class LinkOwner {
 public:
  virtual ~LinkOwner() = default;
  // A whole, checked frame; its body is valid during the call.
  virtual void on_frame(Link& link, const wire::Frame& frame) = 0;
  // Bytes that are no frame. The owner refuses or closes the link.
  virtual void on_bad_frame(Link& link, wire::FrameError error) = 0;
  // The peer ended it, or the socket failed. The link is closed already.
  virtual void on_link_end(Link& link, const std::string& reason) = 0;
};

class Link : public std::enable_shared_from_this<Link> {
 public:
  // The socket is connected; a session that is not null was made for it; `early` are bytes that
  // were read from it before.
  Link(Socket socket, TlsSession session, std::string peer, std::vector<uint8_t> early = {});
  ~Link();

  void set_owner(std::shared_ptr<LinkOwner> owner) { owner_ = std::move(owner); }
  void read_control_frames();
  // The owner wants another word with the bytes that were no frame, when there are more of them.
  void deliver_and_read();
  void read_more();

  void send(wire::FrameType type, const google::protobuf::MessageLite& message);
  // Says why, gives the peer a moment to read it, closes. The owner gets no more calls. Before the
  // end of a TLS handshake there is no one who could read it: then it only closes.
  void refuse(wire::RefuseCode code, const std::string& reason, bool retry);
  // Sends what is queued, then closes like refuse() does.
  void close_after_sending();
  void close();
  // Called by the reader, or after a failed operation: closes, and informs the owner.
  void fail(const std::string& reason);

  bool open() const { return state_ == State::kOpen; }
  const std::string& peer() const { return peer_; }
  // The owner of the connection, to whom everything that comes over it is charged; set when it is
  // accepted, and again when a client certificate was shown.
  const principal::Principal& principal() const { return principal_; }
  void set_principal(principal::Principal principal) { principal_ = std::move(principal); }
  ByteStream& stream() { return stream_; }
  Socket& socket() { return stream_.socket(); }
  // What was read and is not delivered, for on_bad_frame().
  Bytes unread() const { return {buffer_.data(), filled_}; }
  // The bytes that were read beyond the last frame, for the next owner.
  std::vector<uint8_t> take_early();
  // Gives the connected descriptor away, to another thread, and the stream's session with it; this
  // link is closed then.
  int release();
  // Someone who wants to know when this connection is over: let go of when it is.
  void hold(std::shared_ptr<void> lease) { leases_.push_back(std::move(lease)); }
  std::vector<std::shared_ptr<void>> take_leases() { return std::move(leases_); }
  bool sending() const { return writing_; }
  // Called once, when everything is sent; not when the link is closed before.
  void when_sent(std::function<void()> then) { when_sent_ = std::move(then); }
  uint64_t received_bytes() const { return received_bytes_; }
  uint64_t sent_frames() const { return sent_frames_; }

 private:
  enum class State : uint8_t { kOpen, kLingering, kClosed };

  void on_read(const std::error_code& error, size_t count);
  bool deliver_frames();
  void write_next();
  void begin_linger();
  void linger_more();

  ByteStream stream_;
  const std::string peer_;
  principal::Principal principal_;
  std::shared_ptr<LinkOwner> owner_;
  std::vector<std::shared_ptr<void>> leases_;
  State state_ = State::kOpen;
  std::vector<uint8_t> buffer_;  // read, not yet delivered: bytes [0, filled_)
  size_t filled_ = 0;
  std::deque<std::string> queue_;  // the front one is being written
  size_t queue_bytes_ = 0;
  bool writing_ = false;
  std::function<void()> when_sent_;
  bool linger_when_sent_ = false;
  size_t lingered_bytes_ = 0;
  asio::steady_timer linger_timer_;
  uint64_t received_bytes_ = 0;
  uint64_t sent_frames_ = 0;
};

}  // namespace collect::ingest
