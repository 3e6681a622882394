#include "daemon/ingest/page_reader.h"

#include <algorithm>
#include <asio/post.hpp>
#include <cstring>

#include "daemon/ingest/limits.h"
#include "formats/core/crc32.h"

namespace collect::ingest {
void PageReader::start() {
  parked_ = link_->take_early();
  last_read_ = std::chrono::steady_clock::now();
  state_ = State::kReading;
  asio::post(link_->socket().get_executor(), [self = shared_from_this()] { self->read_turn(); });
}

void PageReader::stop() {
  state_ = State::kStopped;
  sink_.reset();
  batch_ = {};
  buffer_.reset();
}

void PageReader::resume() {
  if (state_ != State::kHeld && state_ != State::kNoBuffer) return;
  state_ = State::kReading;
  asio::post(link_->socket().get_executor(), [self = shared_from_this()] { self->read_turn(); });
}

void PageReader::wait_readable() {
  state_ = State::kWaiting;
  link_->stream().wait_readable([self = shared_from_this()](const std::error_code& error) {
    if (self->state_ != State::kWaiting || error) return;
    self->state_ = State::kReading;
    self->read_turn();
  });
}

void PageReader::read_now() {
  if (state_ != State::kWaiting) return;
  state_ = State::kReading;
  read_turn();
}

// Room for the frame that has begun, and to read on behind it. Only the bytes of that one frame are
// moved; what was decoded stays where the batches point.
bool PageReader::ensure_buffer() {
  const bool fits = buffer_ && end_ < kReadBufferBytes && begin_ + need_bytes_ <= kReadBufferBytes;
  if (fits) return true;
  BufferRef fresh = pool_->acquire();
  if (!fresh) return false;
  if (!parked_.empty()) {
    std::memcpy(fresh->data(), parked_.data(), parked_.size());
    end_ = parked_.size();
    parked_ = {};
  } else {
    const size_t rest = buffer_ ? unread() : 0;
    if (rest != 0) std::memcpy(fresh->data(), buffer_->data() + begin_, rest);
    end_ = rest;
  }
  begin_ = 0;
  buffer_ = std::move(fresh);
  return true;
}

// Reads until the socket is empty, the queue is full or the turn is over.
void PageReader::read_turn() {
  const auto self = shared_from_this();
  size_t turn_bytes = 0;
  while (state_ == State::kReading) {
    if (!sink_->wants_more()) {
      state_ = State::kHeld;
      return;
    }
    if (!ensure_buffer()) {
      state_ = State::kNoBuffer;
      pool_->wait(
          [self] { asio::post(self->link_->socket().get_executor(), [self] { self->resume(); }); });
      return;
    }
    if (unread() >= need_bytes_) {  // read before this reader, or before the sink had enough
      if (!decode_what_came()) return;
      continue;
    }
    std::error_code error;
    const auto room = asio::buffer(buffer_->data() + end_, kReadBufferBytes - end_);
    const size_t count = room.size() == 0 ? 0 : link_->stream().read_some(room, error);
    if (error == asio::error::would_block) {
      if (!flush_batch()) return;
      let_go_of_buffer();
      wait_readable();
      return;
    }
    if (error) {
      if (flush_batch()) {
        link_->fail(error == asio::error::eof ? "closed by the peer" : error.message());
      }
      return;
    }
    end_ += count;
    received_bytes_ += count;
    turn_bytes += count;
    if (!decode_what_came()) return;
    if (turn_bytes >= kReadTurnBytes) {
      if (!flush_batch()) return;
      asio::post(link_->socket().get_executor(), [self] { self->read_turn(); });
      return;
    }
  }
}

// A buffer may hold thousands of small frames, and pages that are a hundred times larger when they
// are decoded: the sink is asked in between too. What is left is decoded when it wants more.
bool PageReader::has_enough(uint32_t& frames) {
  if (++frames < kFramesBetweenAsking) return false;
  frames = 0;
  return !sink_->wants_more();
}

bool PageReader::decode_what_came() {
  last_read_ = std::chrono::steady_clock::now();
  uint32_t frames = 0;
  while (true) {
    wire::Frame frame;
    const Bytes rest(buffer_->data() + begin_, unread());
    const wire::Decoded decoded = wire::decode_frame(rest, &crc32c, frame);
    if (decoded.status == wire::DecodeStatus::kNeedMore) {
      need_bytes_ = decoded.need_bytes;
      // A full buffer is left behind whole: its pages need not wait for the next one.
      return begin_ + need_bytes_ <= kReadBufferBytes || flush_batch();
    }
    if (decoded.status == wire::DecodeStatus::kBad) {
      if (!flush_batch()) return false;
      const std::shared_ptr<PageSink> sink = sink_;
      stop();
      sink->on_bad_data(decoded.error);
      return false;
    }
    begin_ += frame.frame_bytes;
    need_bytes_ = sizeof(wire::FrameHeader);
    if (frame.type == wire::FrameType::kPage) {
      if (!batch_.buffer) batch_.buffer = BufferPool::Buffer::lend(buffer_);
      batch_.bytes += frame.page.raw_bytes;
      batch_.pages.push_back(Page{frame.page, frame.page_bytes, {}});
      if (batch_.bytes < kBytesBetweenAsking) continue;
      if (!flush_batch()) return false;
      if (!sink_->wants_more()) return true;
      continue;
    }
    if (!flush_batch()) return false;
    const std::shared_ptr<PageSink> sink = sink_;
    if (!sink->on_data_frame(frame) || state_ != State::kReading) {
      stop();
      return false;
    }
    if (has_enough(frames)) return true;
  }
}

// False when the reading is over.
bool PageReader::flush_batch() {
  if (batch_.pages.empty()) return true;
  PageBatch batch = std::move(batch_);
  batch_ = {};
  const std::shared_ptr<PageSink> sink = sink_;
  if (sink->on_pages(std::move(batch)) && state_ == State::kReading) return true;
  stop();
  return false;
}

void PageReader::park() {
  parked_.assign(buffer_->data() + begin_, buffer_->data() + end_);
  buffer_.reset();
  begin_ = end_ = 0;
}

// The socket is empty. When others need buffers, this one goes; else it is used again from its
// front, while it is still in the processor's cache, if no writer looks at it.
void PageReader::let_go_of_buffer() {
  if (pool_->scarce()) {
    park();
  } else if (unread() == 0 && buffer_->unshared()) {
    begin_ = end_ = 0;
  }
}

bool PageReader::check_idle(std::chrono::steady_clock::time_point now) {
  if (state_ != State::kWaiting) return true;
  if (buffer_ && now - last_read_ > kSweepInterval) park();
  const bool in_frame = buffer_ ? unread() != 0 : !parked_.empty();
  return !in_frame || now - last_read_ <= kFrameStall;
}

}  // namespace collect::ingest
