#include "daemon/ingest/link/link.h"

#include <algorithm>
#include <asio/buffer.hpp>

#include "daemon/ingest/link/limits.h"
#include "formats/core/crc32.h"
#include "formats/core/threads.h"

namespace collect::ingest {

Link::Link(Socket socket, TlsSession session, std::string peer, std::vector<uint8_t> early)
    : stream_(std::move(socket), std::move(session)),
      peer_(std::move(peer)),
      buffer_(std::move(early)),
      filled_(buffer_.size()),
      linger_timer_(stream_.socket().get_executor()) {}

Link::~Link() = default;

void Link::read_control_frames() {
  if (state_ != State::kOpen) return;
  const auto self = shared_from_this();
  deliver_and_read();
}

// Where there is no memory for what comes, the peer connects again.
void Link::deliver_and_read() {
  const Status done = contain([this] {
    if (deliver_frames()) read_more();
  });
  if (!done.ok()) fail("this machine: " + done.error().message);
}

void Link::read_more() {
  if (buffer_.size() < kControlReadBytes) buffer_.resize(kControlReadBytes);
  const auto room = asio::buffer(buffer_.data() + filled_, buffer_.size() - filled_);
  stream_.async_read_some(room,
                          [self = shared_from_this()](const std::error_code& error, size_t count) {
                            self->on_read(error, count);
                          });
}

void Link::on_read(const std::error_code& error, size_t count) {
  if (state_ != State::kOpen || error == asio::error::operation_aborted) return;
  if (error) {
    fail(error == asio::error::eof ? "closed by the peer" : error.message());
    return;
  }
  filled_ += count;
  received_bytes_ += count;
  deliver_and_read();
}

// False when the link is not to be read any more. Leaves room for the frame that has begun.
bool Link::deliver_frames() {
  size_t front = 0;
  bool go_on = true;
  while (go_on) {
    wire::Frame frame;
    const Bytes rest(buffer_.data() + front, filled_ - front);
    const wire::Decoded decoded = wire::decode_frame(rest, &crc32c, frame);
    const std::shared_ptr<LinkOwner> owner = owner_;  // it may let go of the link meanwhile
    if (decoded.status == wire::DecodeStatus::kBad) {
      if (owner) owner->on_bad_frame(*this, decoded.error);
      return false;
    }
    if (decoded.status == wire::DecodeStatus::kNeedMore) {
      std::copy(rest.begin(), rest.end(), buffer_.begin());
      filled_ = rest.size();
      buffer_.resize(std::max<size_t>(decoded.need_bytes, kControlReadBytes));
      return true;
    }
    if (owner) owner->on_frame(*this, frame);
    front += frame.frame_bytes;
    go_on = state_ == State::kOpen && owner_ == owner;
  }
  // A new owner reads on from here.
  std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(front),
            buffer_.begin() + static_cast<std::ptrdiff_t>(filled_), buffer_.begin());
  filled_ -= front;
  return false;
}

std::vector<uint8_t> Link::take_early() {
  std::vector<uint8_t> early(buffer_.begin(),
                             buffer_.begin() + static_cast<std::ptrdiff_t>(filled_));
  filled_ = 0;
  buffer_ = {};
  return early;
}

void Link::send(wire::FrameType type, const google::protobuf::MessageLite& message) {
  if (state_ != State::kOpen) return;
  std::string frame(sizeof(wire::FrameHeader), '\0');
  COLLECT_CHECK(message.AppendToString(&frame));
  const Bytes whole(reinterpret_cast<const uint8_t*>(frame.data()), frame.size());
  const Bytes body = whole.subspan(sizeof(wire::FrameHeader));
  COLLECT_CHECK(body.size() <= wire::kMaxControlBody);
  wire::encode_control_header(type, body, &crc32c, reinterpret_cast<uint8_t*>(frame.data()));
  if (queue_bytes_ + frame.size() > kMaxSendQueueBytes) {
    fail("does not read what it is sent");
    return;
  }
  queue_bytes_ += frame.size();
  queue_.push_back(std::move(frame));
  ++sent_frames_;
  if (!writing_) write_next();
}

void Link::write_next() {
  writing_ = true;
  stream_.async_write(asio::buffer(queue_.front()),
                      [self = shared_from_this()](const std::error_code& error, size_t) {
                        self->writing_ = false;
                        if (self->state_ == State::kClosed) return;
                        if (error) {
                          self->fail(error.message());
                          return;
                        }
                        self->queue_bytes_ -= self->queue_.front().size();
                        self->queue_.pop_front();
                        if (!self->queue_.empty()) {
                          self->write_next();
                          return;
                        }
                        if (self->linger_when_sent_) self->begin_linger();
                        if (self->when_sent_) std::exchange(self->when_sent_, nullptr)();
                      });
}

void Link::refuse(wire::RefuseCode code, const std::string& reason, bool retry) {
  if (!stream_.is_ready()) {
    close_after_sending();
    return;
  }
  wire::Refuse refusal;
  refusal.set_code(code);
  refusal.set_reason(reason.substr(0, 255));  // what the agent's fixed-size message holds
  refusal.set_retry(retry);
  owner_.reset();
  send(wire::FrameType::kRefuse, refusal);
  close_after_sending();
}

void Link::close_after_sending() {
  if (state_ != State::kOpen) return;
  owner_.reset();
  state_ = State::kLingering;
  linger_when_sent_ = true;
  linger_timer_.expires_after(kLingerDeadline);
  linger_timer_.async_wait([self = shared_from_this()](const std::error_code& error) {
    if (!error) self->close();
  });
  if (!writing_) begin_linger();
}

// The peer reads the last frame only if its own unread bytes do not reset the connection first: so
// they are taken, and thrown away, until it closes.
void Link::begin_linger() {
  stream_.end_sending();
  buffer_.resize(kControlReadBytes);
  linger_more();
}

void Link::linger_more() {
  if (state_ != State::kLingering) return;
  socket().async_read_some(asio::buffer(buffer_),
                           [self = shared_from_this()](const std::error_code& error, size_t count) {
                             if (self->state_ != State::kLingering) return;
                             self->lingered_bytes_ += count;
                             if (error || self->lingered_bytes_ > kLingerBytes) {
                               self->close();
                             } else {
                               self->linger_more();
                             }
                           });
}

void Link::close() {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  owner_.reset();
  when_sent_ = nullptr;
  linger_timer_.cancel();
  stream_.close();
  leases_.clear();
}

void Link::fail(const std::string& reason) {
  if (state_ != State::kOpen) {
    close();
    return;
  }
  const std::shared_ptr<LinkOwner> owner = std::move(owner_);
  const auto self = shared_from_this();
  close();
  if (owner) owner->on_link_end(*this, reason);
}

int Link::release() {
  state_ = State::kClosed;
  owner_.reset();
  linger_timer_.cancel();
  return stream_.release();
}

}  // namespace collect::ingest
