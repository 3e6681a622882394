#include "daemon/ingest/buffer_pool.h"

#include <cstdlib>

#include "daemon/ingest/limits.h"
#include "formats/core/result.h"

namespace collect::ingest {
namespace {

constexpr size_t kAlignment = 4096;
static_assert(kReadBufferBytes % kAlignment == 0);

}  // namespace

BufferPool::~BufferPool() {
  for (uint8_t* bytes : free_) std::free(bytes);
}

BufferRef BufferPool::acquire() {
  uint8_t* bytes = nullptr;
  {
    std::lock_guard lock(mutex_);
    if (in_use_ >= max_buffers_) return nullptr;
    if (!free_.empty()) {
      bytes = free_.back();
      free_.pop_back();
    }
    ++in_use_;
  }
  if (bytes == nullptr) {
    bytes = static_cast<uint8_t*>(std::aligned_alloc(kAlignment, kReadBufferBytes));
  }
  COLLECT_CHECK(bytes != nullptr);  // the pool's bound is small: without it the daemon can't serve
  return std::make_shared<Buffer>(bytes, shared_from_this());
}

void BufferPool::wait(std::function<void()> when_free) {
  {
    std::lock_guard lock(mutex_);
    if (in_use_ >= max_buffers_) {
      waiters_.push_back(std::move(when_free));
      return;
    }
  }
  when_free();
}

BufferRef BufferPool::Buffer::lend(const BufferRef& buffer) {
  buffer->loans_.fetch_add(1, std::memory_order_relaxed);
  return BufferRef(buffer.get(), [buffer](Buffer*) {
    buffer->loans_.fetch_sub(1, std::memory_order_release);  // pairs with unshared()
  });
}

void BufferPool::give_back(uint8_t* bytes) {
  std::vector<std::function<void()>> waiters;
  {
    std::lock_guard lock(mutex_);
    --in_use_;
    if (free_.size() < kKeptReadBuffers) {
      free_.push_back(bytes);
      bytes = nullptr;
    }
    waiters.swap(waiters_);
  }
  std::free(bytes);
  // All of them, because one alone may have lost its connection and would not pass the word on.
  for (const std::function<void()>& waiter : waiters) waiter();
}

}  // namespace collect::ingest
