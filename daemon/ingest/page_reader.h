// Reads one data channel: pages in place into pooled buffers, everything else as control frames, in
// the order of the wire. Pages that arrived together leave together, as one batch.
//
// Belongs to the io thread of its link. An idle channel holds no buffer: one is taken when the
// socket has something, and the bytes of a frame that does not go on are parked in memory of their
// own size.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "daemon/ingest/buffer_pool.h"
#include "daemon/ingest/link.h"
#include "storage/session_writer.h"

namespace collect::ingest {

// Neighbouring pages of one channel, as they were sent: encoded ones become records where they are
// written (PageUnpacker). They point into `buffer`.
struct PageBatch {
  std::vector<Page> pages;
  BufferRef buffer;
  size_t bytes = 0;  // as records: a page may be a few bytes on the way and a megabyte here
};

class PageSink {
 public:
  virtual ~PageSink() = default;
  // Return false to end the reading: the link was refused, closed, or is not wanted any more.
  virtual bool on_pages(PageBatch batch) = 0;
  virtual bool on_data_frame(const wire::Frame& frame) = 0;
  virtual void on_bad_data(wire::FrameError error) = 0;
  // Asked before every read. After false the reader stands still until resume().
  virtual bool wants_more() = 0;
};

class PageReader : public std::enable_shared_from_this<PageReader> {
 public:
  PageReader(std::shared_ptr<Link> link, std::shared_ptr<PageSink> sink,
             std::shared_ptr<BufferPool> pool)
      : link_(std::move(link)), sink_(std::move(sink)), pool_(std::move(pool)) {}

  void start();
  void resume();
  void read_now();  // what has come, without waiting for the thread's turn
  void stop();      // nothing more reaches the sink; the link is left alone
  // Every sweep: gives the buffer of a channel that has nothing to read back to the pool. False: a
  // frame has been standing half-read for longer than kFrameStall.
  bool check_idle(std::chrono::steady_clock::time_point now);
  uint64_t received_bytes() const { return received_bytes_; }
  // It stands still because the sink wanted no more.
  bool held() const { return state_ == State::kHeld; }

 private:
  enum class State : uint8_t { kIdle, kWaiting, kReading, kHeld, kNoBuffer, kStopped };

  void wait_readable();
  void read_turn();
  bool ensure_buffer();
  bool decode_what_came();
  bool flush_batch();
  bool has_enough(uint32_t& frames);
  void park();
  void let_go_of_buffer();
  size_t unread() const { return end_ - begin_; }

  const std::shared_ptr<Link> link_;
  std::shared_ptr<PageSink> sink_;
  const std::shared_ptr<BufferPool> pool_;
  State state_ = State::kIdle;
  BufferRef buffer_;
  size_t begin_ = 0;                               // first byte of buffer_ that is not decoded
  size_t end_ = 0;                                 // end of what was read
  size_t need_bytes_ = sizeof(wire::FrameHeader);  // of the frame at begin_, as far as known
  std::vector<uint8_t> parked_;                    // the same bytes, while there is no buffer_
  PageBatch batch_;
  uint64_t received_bytes_ = 0;
  std::chrono::steady_clock::time_point last_read_{};
};

}  // namespace collect::ingest
