#include "daemon/ingest/buffer_pool.h"

#include <sys/mman.h>

#include <algorithm>

#include "daemon/ingest/limits.h"
#include "formats/core/result.h"

namespace collect::ingest {
namespace {

// Mapped and not allocated: what goes back, goes back to the system.
uint8_t* map_buffer() {
  void* mapped =
      ::mmap(nullptr, kReadBufferBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  COLLECT_CHECK(mapped != MAP_FAILED);  // the pool's bound is small: it can't serve without
  return static_cast<uint8_t*>(mapped);
}

void unmap_buffer(uint8_t* bytes) {
  (void)::munmap(bytes, kReadBufferBytes);
}

}  // namespace

BufferPool::~BufferPool() {
  for (uint8_t* bytes : free_) unmap_buffer(bytes);
}

BufferRef BufferPool::acquire() {
  uint8_t* bytes = nullptr;
  {
    std::lock_guard lock(mutex_);
    if (in_use_ >= max_buffers_) return nullptr;
    if (!free_.empty()) {
      bytes = free_.back();
      free_.pop_back();
      least_free_ = std::min(least_free_, free_.size());
    }
    ++in_use_;
  }
  if (bytes == nullptr) bytes = map_buffer();
  return std::make_shared<Buffer>(bytes, shared_from_this());
}

void BufferPool::trim() {
  std::vector<uint8_t*> idle;
  {
    std::lock_guard lock(mutex_);
    // The front of the list is what nobody came down to.
    const auto end = free_.begin() + static_cast<ptrdiff_t>(least_free_);
    idle.assign(free_.begin(), end);
    free_.erase(free_.begin(), end);
    least_free_ = free_.size();
  }
  for (uint8_t* bytes : idle) unmap_buffer(bytes);
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
    free_.push_back(bytes);
    waiters.swap(waiters_);
  }
  // All of them, because one alone may have lost its connection and would not pass the word on.
  for (const std::function<void()>& waiter : waiters) waiter();
}

}  // namespace collect::ingest
