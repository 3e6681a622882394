// Where a jmp_buf leads to.
#pragma once

#include <cstdint>

namespace collect::agent {

// The stack pointer that longjmp(buffer) sets; kUnknownStack where this C library keeps it in a way
// that is not known. Async-signal-safe.
uint64_t jump_target(const void* buffer);

}  // namespace collect::agent
