// Page buffers of the data channels: 1 MiB, page-aligned, bounded in number for the whole process.
// A buffer is shared by the connection that reads into its free end and by the batches that wait
// for a writer; it returns here when the last of them lets go.
//
// Thread-safe. A connection that finds no buffer stops reading and is called when one is free.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "formats/core/bytes.h"

namespace collect::ingest {

class BufferPool : public std::enable_shared_from_this<BufferPool> {
 public:
  class Buffer {
   public:
    Buffer(uint8_t* bytes, std::shared_ptr<BufferPool> home)
        : bytes_(bytes), home_(std::move(home)) {}
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() { home_->give_back(bytes_); }

    uint8_t* data() { return bytes_; }
    // A share for somebody who reads what is there, on any thread, and lets go when done.
    static std::shared_ptr<Buffer> lend(const std::shared_ptr<Buffer>& buffer);
    // Whether no share is out, and everything done with one happened before.
    bool unshared() const { return loans_.load(std::memory_order_acquire) == 0; }

   private:
    std::atomic<uint32_t> loans_{0};
    uint8_t* bytes_;
    std::shared_ptr<BufferPool> home_;
  };
  using Ref = std::shared_ptr<Buffer>;

  explicit BufferPool(size_t max_buffers) : max_buffers_(max_buffers) {}
  ~BufferPool();

  // Null when all are in use.
  Ref acquire();
  // Calls `when_free` once, from any thread, when a buffer may be had again: try, and perhaps wait
  // again. Calls at once when one is free already.
  void wait(std::function<void()> when_free);
  size_t in_use() const { return in_use_.load(std::memory_order_relaxed); }
  // Gives the buffers back to the system that lay free since the last call.
  void trim();
  // More than half are in use: nobody should keep one that he can do without.
  bool scarce() const { return in_use() * 2 > max_buffers_; }

 private:
  void give_back(uint8_t* bytes);

  const size_t max_buffers_;
  mutable std::mutex mutex_;
  std::vector<uint8_t*> free_;                  // guarded by mutex_; used from its end
  size_t least_free_ = 0;                       // guarded by mutex_; since the last trim
  std::vector<std::function<void()>> waiters_;  // guarded by mutex_
  std::atomic<size_t> in_use_{0};               // changed under mutex_
};

using BufferRef = BufferPool::Ref;

}  // namespace collect::ingest
