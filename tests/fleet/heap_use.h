// Who has how much of the heap: operator new and delete of this program count for the part
// that runs at that moment on that thread. Memory of malloc() alone is not seen.
#pragma once

#include <cstdint>

namespace collect::fleet {

enum class HeapOwner : uint8_t { kOthers, kCollectors, kAgents, kDisks };

uint64_t heap_bytes(HeapOwner owner);  // any thread

// What is allocated on this thread meanwhile is `owner`'s, until it is freed, wherever that is.
class HeapScope {
 public:
  explicit HeapScope(HeapOwner owner);
  ~HeapScope();
  HeapScope(const HeapScope&) = delete;
  HeapScope& operator=(const HeapScope&) = delete;

 private:
  const HeapOwner before_;
};

}  // namespace collect::fleet
