// The memory of the agent's OpenSSL: a fixed arena, in blocks of powers of two that are never
// joined or split. What is never used is never touched. Thread-safe by a spin lock, which is held
// for a few instructions.
#pragma once

#include <cstddef>

namespace collect::agent {

// Two sessions and the certificates take less than 2 MiB.
inline constexpr size_t kTlsArenaBytes = 8u << 20;
inline constexpr size_t kMinTlsBlock = 32;
inline constexpr size_t kMaxTlsBlock = 1u << 20;  // its header included

// As malloc, realloc and free; null beyond the limits.
void* tls_allocate(size_t bytes);
void* tls_reallocate(void* block, size_t bytes);
void tls_free(void* block);
// Taken from the arena so far, whether free again or not.
size_t tls_arena_used();

}  // namespace collect::agent
