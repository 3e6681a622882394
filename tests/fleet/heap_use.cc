#include "tests/fleet/heap_use.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace collect::fleet {
namespace {

constexpr size_t kOwners = 4;
std::atomic<uint64_t> g_bytes[kOwners];
thread_local HeapOwner g_owner = HeapOwner::kOthers;

// In front of each allocation; as long as the strictest alignment of operator new.
struct alignas(std::max_align_t) Label {
  uint64_t bytes;
  HeapOwner owner;
};

void* labelled(size_t bytes) {
  auto* const label = static_cast<Label*>(std::malloc(sizeof(Label) + bytes));
  if (label == nullptr) throw std::bad_alloc();
  *label = {bytes, g_owner};
  g_bytes[static_cast<size_t>(g_owner)].fetch_add(bytes, std::memory_order_relaxed);
  return label + 1;
}

void unlabelled(void* memory) {
  if (memory == nullptr) return;
  Label* const label = static_cast<Label*>(memory) - 1;
  g_bytes[static_cast<size_t>(label->owner)].fetch_sub(label->bytes, std::memory_order_relaxed);
  std::free(label);
}

}  // namespace

uint64_t heap_bytes(HeapOwner owner) {
  return g_bytes[static_cast<size_t>(owner)].load(std::memory_order_relaxed);
}

HeapScope::HeapScope(HeapOwner owner) : before_(g_owner) {
  g_owner = owner;
}

HeapScope::~HeapScope() {
  g_owner = before_;
}

}  // namespace collect::fleet

void* operator new(size_t bytes) {
  return collect::fleet::labelled(bytes);
}
void operator delete(void* memory) noexcept {
  collect::fleet::unlabelled(memory);
}
void operator delete(void* memory, size_t) noexcept {
  collect::fleet::unlabelled(memory);
}
