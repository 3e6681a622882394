#include "agent/transport/tls_arena.h"

#include <sched.h>

#include <atomic>
#include <cstdint>
#include <cstring>

#include "agent/platform/system.h"

namespace collect::agent {
namespace {

constexpr size_t kHeaderBytes = 16;  // keeps what follows aligned for everything
constexpr uint32_t kClasses = 16;    // kMinTlsBlock to kMaxTlsBlock
static_assert(kMinTlsBlock << (kClasses - 1) == kMaxTlsBlock);

struct Free {
  Free* next;
};

alignas(64) uint8_t g_arena[kTlsArenaBytes];
size_t g_used = 0;
Free* g_free[kClasses];
std::atomic<uint32_t> g_locked{0};

struct Locked {
  Locked() {
    uint32_t expected = 0;
    // Pairs with the release below: the lists are seen as the other side left them.
    while (!g_locked.compare_exchange_weak(expected, 1, std::memory_order_acquire)) {
      expected = 0;
      sys::sched_yield();
    }
  }
  ~Locked() { g_locked.store(0, std::memory_order_release); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
};

size_t block_bytes(uint32_t size_class) {
  return kMinTlsBlock << size_class;
}

uint32_t class_of(const void* block) {
  uint32_t size_class = 0;
  std::memcpy(&size_class, static_cast<const uint8_t*>(block) - kHeaderBytes, sizeof size_class);
  return size_class;
}

}  // namespace

void* tls_allocate(size_t bytes) {
  if (bytes > kMaxTlsBlock - kHeaderBytes) return nullptr;
  uint32_t size_class = 0;
  while (block_bytes(size_class) - kHeaderBytes < bytes) ++size_class;
  const Locked locked;
  Free* const known = g_free[size_class];
  if (known != nullptr) {
    g_free[size_class] = known->next;
    return known;
  }
  if (block_bytes(size_class) > kTlsArenaBytes - g_used) return nullptr;
  uint8_t* const begin = g_arena + g_used;
  g_used += block_bytes(size_class);
  std::memcpy(begin, &size_class, sizeof size_class);
  return begin + kHeaderBytes;
}

void* tls_reallocate(void* block, size_t bytes) {
  if (block == nullptr) return tls_allocate(bytes);
  const size_t room = block_bytes(class_of(block)) - kHeaderBytes;
  if (bytes <= room) return block;
  void* const fresh = tls_allocate(bytes);
  if (fresh == nullptr) return nullptr;
  std::memcpy(fresh, block, room);
  tls_free(block);
  return fresh;
}

void tls_free(void* block) {
  if (block == nullptr) return;
  const uint32_t size_class = class_of(block);
  const Locked locked;
  auto* const freed = static_cast<Free*>(block);
  freed->next = g_free[size_class];
  g_free[size_class] = freed;
}

size_t tls_arena_used() {
  const Locked locked;
  return g_used;
}

}  // namespace collect::agent
