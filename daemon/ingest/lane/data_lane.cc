#include "daemon/ingest/lane/data_lane.h"

#include <asio/buffer.hpp>
#include <asio/post.hpp>
#include <cstring>
#include <utility>

#include "formats/core/threads.h"

namespace collect::ingest {

DataLane::DataLane(asio::io_context& io, std::shared_ptr<Link> link,
                   std::shared_ptr<LaneOwner> owner, std::shared_ptr<LaneDecoder> decoder,
                   LaneBuffers& buffers, IngestCounters& counters)
    : io_(io),
      decoder_(std::move(decoder)),
      buffers_(buffers),
      counters_(counters),
      link_(std::move(link)),
      owner_(std::move(owner)),
      wait_timer_(io) {}

// ---- io thread

void DataLane::start() {
  unread_ = link_->take_early();
  counters_.bytes_received.fetch_add(unread_.size(), std::memory_order_relaxed);
  last_read_ = std::chrono::steady_clock::now();
  begin_turn_later();
}

void DataLane::begin_turn_later() {
  state_ = State::kTurn;
  asio::post(io_, [self = shared_from_this()] { self->take_step(&DataLane::begin_turn); });
}

// Where there is no memory for it, the agent connects again.
void DataLane::take_step(void (DataLane::*step)()) {
  const Status done = contain([&] { (this->*step)(); });
  if (done.ok() || state_ == State::kEnded) return;
  const std::shared_ptr<LaneOwner> owner = std::move(owner_);
  finish_turn();
  if (owner) owner->on_data_end(std::make_error_code(std::errc::not_enough_memory));
}

// The link may still be sending the welcome: reading and sending are not done by two threads.
void DataLane::begin_turn() {
  if (last_) {
    finish_turn();
    return;
  }
  if (link_->sending()) {
    state_ = State::kSending;
    link_->when_sent([self = shared_from_this()] { self->begin_turn_later(); });
    return;
  }
  const std::chrono::nanoseconds wait = owner_->read_wait();
  if (wait.count() > 0) {
    state_ = State::kHeld;
    wait_timer_.expires_after(wait);
    wait_timer_.async_wait([self = shared_from_this()](const std::error_code& error) {
      if (!error && self->state_ == State::kHeld) self->begin_turn_later();
    });
    return;
  }
  if (!session_) {
    read_without_session();
    return;
  }
  const auto over = [self = shared_from_this()] {
    asio::post(self->io_, [self] { self->take_step(&DataLane::on_turn); });
  };
  session_->push(
      [this, over](StoredSession& session) {
        Status done = turn(&session);
        const bool must_wait = !done.ok() && done.code() == Code::kExhausted;
        if (must_wait) counters_.reads_held.fetch_add(1, std::memory_order_relaxed);
        if (must_wait && !stop_) return done;
        if (!done.ok()) turn_.end = LaneTurn::End::kDropped;
        // More comes at once: a seal, or more threads.
        const bool more = turn_.end == LaneTurn::End::kFrame || turn_.frames >= kFramesPerTurn;
        if (more) session.put_off_commit();
        over();
        return must_wait ? Status() : done;
      },
      [this, over] {
        turn_.end = LaneTurn::End::kDropped;
        over();
      });
}

void DataLane::read_without_session() {
  (void)turn(nullptr);
  on_turn();
}

void DataLane::read_now() {
  if (state_ != State::kWaiting || session_) return;
  state_ = State::kTurn;
  read_without_session();
}

void DataLane::wait_readable() {
  state_ = State::kWaiting;
  link_->stream().wait_readable([self = shared_from_this()](const std::error_code& error) {
    if (self->state_ != State::kWaiting || error) return;
    self->state_ = State::kTurn;
    self->take_step(&DataLane::begin_turn);
  });
}

void DataLane::finish_turn() {
  state_ = State::kEnded;
  unread_ = {};
  if (last_) std::exchange(last_, nullptr)(*link_);
}

void DataLane::on_turn() {
  const auto self = shared_from_this();
  LaneTurn turn = std::exchange(turn_, {});
  counters_.bytes_received.fetch_add(turn.received_bytes, std::memory_order_relaxed);
  if (turn.received_bytes != 0) last_read_ = std::chrono::steady_clock::now();
  if (last_) {
    finish_turn();
    return;
  }
  switch (turn.end) {
    case LaneTurn::End::kEmpty:
      wait_readable();
      return;
    case LaneTurn::End::kFault:
    case LaneTurn::End::kClosed: {
      finish_turn();
      const std::shared_ptr<LaneOwner> owner = std::move(owner_);
      if (turn.end == LaneTurn::End::kFault) {
        owner->on_data_fault(turn.fault);
      } else {
        owner->on_data_end(turn.error);
      }
      return;
    }
    case LaneTurn::End::kFrame:
      if (!deliver(turn)) return;
      break;
    case LaneTurn::End::kDropped:
      session_ = nullptr;
      break;
    case LaneTurn::End::kMore:
      break;
  }
  begin_turn_later();
}

// The lane may be ended within a call. False: it is over.
bool DataLane::deliver(const LaneTurn& turn) {
  state_ = State::kDelivering;
  wire::Frame frame;
  frame.type = turn.frame_type;
  frame.body = turn.frame_body;
  const std::shared_ptr<LaneOwner> owner = owner_;
  const bool goes_on = owner->on_data_frame(frame);
  if (state_ == State::kEnded) return false;
  if (goes_on) return true;
  finish_turn();
  owner_ = nullptr;
  return false;
}

void DataLane::end(std::function<void(Link&)> last) {
  stop_ = true;
  owner_ = nullptr;
  if (session_) session_->commit();  // it may have been put off for the next turn
  session_ = nullptr;
  link_->when_sent(nullptr);
  wait_timer_.cancel();
  last_ = std::move(last);  // of two, the later one
  if (state_ != State::kTurn) finish_turn();
}

bool DataLane::check_idle(std::chrono::steady_clock::time_point now) {
  if (state_ != State::kWaiting) return true;
  if (unread_.empty()) unread_ = {};
  const bool in_frame = !unread_.empty() || decoder_->in_frame();
  return !in_frame || now - last_read_ <= kFrameStall;
}

// ---- a turn

// Reads until the socket is empty, or the turn has had its share.
Status DataLane::turn(StoredSession* session) {
  std::unique_ptr<LaneBuffer> buffer = buffers_.take();
  uint8_t* const bytes = buffer->bytes.get();
  size_t begin = 0;
  size_t end = unread_.size();
  if (end != 0) std::memcpy(bytes, unread_.data(), end);
  bool is_empty = false;
  Status status;
  while (true) {
    size_t taken = 0;
    status =
        decoder_->take(Bytes(bytes + begin, end - begin), session, buffer->unpacker, turn_, taken);
    begin += taken;
    if (!status.ok() || turn_.end != LaneTurn::End::kMore) break;
    // What was read may not all be taken yet.
    if (stop_ || turn_.received_bytes >= kReadTurnBytes || turn_.is_full()) break;
    if (is_empty) {
      turn_.end = read_error_ ? LaneTurn::End::kClosed : LaneTurn::End::kEmpty;
      turn_.error = read_error_;
      break;
    }
    std::memmove(bytes, bytes + begin, end - begin);
    end -= begin;
    begin = 0;
    is_empty = fill(bytes, end);
  }
  unread_.assign(bytes + begin, bytes + end);
  buffers_.give_back(std::move(buffer));
  return status;
}

// Whether there is nothing more to read now; read_error_ says when there will be nothing any more.
bool DataLane::fill(uint8_t* bytes, size_t& end) {
  if (read_error_) return true;
  while (end < kReadBufferBytes) {
    std::error_code error;
    const auto room = asio::buffer(bytes + end, kReadBufferBytes - end);
    const size_t count = link_->stream().read_some(room, error);
    if (error) {
      if (error != asio::error::would_block) read_error_ = error;
      return true;
    }
    end += count;
    turn_.received_bytes += count;
  }
  return false;
}

}  // namespace collect::ingest
