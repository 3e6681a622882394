#include "agent/ring/hooks/shared_threads.h"

#include <atomic>

#include "agent/platform/system.h"
#include "agent/ring/stream.h"
#include "agent/shared_memory.h"

namespace collect::agent {
namespace {

struct alignas(kSharedPage) SharedThreads {
  std::atomic<uint32_t> count{0};
  std::atomic<uint32_t> numbers[kMaxSharedThreads] = {};  // 0: free
};
constinit SharedThreads shared_threads;

// A thread of this process, or a process that shares its memory.
bool is_task_gone(uint32_t number) {
  return sys::kill(static_cast<pid_t>(number), 0) != 0 && errno == ESRCH;
}

}  // namespace

bool shared_threads_init() {
  if (!share(shared_threads)) return false;
  shared_threads.count.store(0, std::memory_order_relaxed);
  for (std::atomic<uint32_t>& number : shared_threads.numbers) {
    number.store(0, std::memory_order_relaxed);
  }
  return true;
}

void begin_shared_thread() {
  Stream* const stream = tls_stream;
  if (stream == &g_ignored) return;
  shared_threads.count.fetch_add(1, std::memory_order_seq_cst);
  tls_stream = &g_shared_by_threads;
  const bool is_slot = stream != nullptr && stream != &g_registering &&
                       stream != &g_shared_by_threads && stream != &g_without_clock;
  if (is_slot) stream_leave(*stream);
}

void end_begin_shared_thread(pid_t number) {
  if (tls_stream == &g_ignored) return;
  if (number <= 0) {
    shared_threads.count.fetch_sub(1, std::memory_order_seq_cst);
    return;
  }
  for (std::atomic<uint32_t>& slot : shared_threads.numbers) {
    uint32_t free = 0;
    if (slot.compare_exchange_strong(free, static_cast<uint32_t>(number),
                                     std::memory_order_release)) {
      return;
    }
  }
}

bool has_shared_threads() {
  return shared_threads.count.load(std::memory_order_acquire) != 0;
}

void poll_shared_threads() {
  if (!has_shared_threads()) return;
  for (std::atomic<uint32_t>& slot : shared_threads.numbers) {
    const uint32_t number = slot.load(std::memory_order_acquire);
    if (number == 0 || !is_task_gone(number)) continue;
    slot.store(0, std::memory_order_relaxed);
    shared_threads.count.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace collect::agent
