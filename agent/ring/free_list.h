// Lists of free places that threads take from and give back to without a lock.
#pragma once

#include <cstdint>

namespace collect::agent {

// The head of such a list, changed: the first free place in the low half (0: none), a change
// counter in the high half. It moves on whichever way the list changes, so that a head which was
// read before is never there again (ABA).
inline uint64_t changed_head(uint64_t head, uint32_t first) {
  return ((head >> 32) + 1) << 32 | first;
}

}  // namespace collect::agent
