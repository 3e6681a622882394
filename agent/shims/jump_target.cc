#include "agent/shims/jump_target.h"

#include <setjmp.h>

#include "agent/ring/hooks/unwinding.h"

namespace collect::agent {
namespace {

// Word of the stack pointer in glibc's and musl's buffers. glibc mixes it with a secret of the
// process: x86-64 exclusive-ors and rotates, arm64 exclusive-ors; musl keeps it plain.
#if defined(__x86_64__)
constexpr int kStackWord = 6;
constexpr int kRotated = 17;

uint64_t rotate_back(uint64_t word) {
  return word >> kRotated | word << (64 - kRotated);
}
#else
constexpr int kStackWord = 13;
#endif

uint64_t word_of(const void* buffer) {
  return static_cast<const uint64_t*>(buffer)[kStackWord];
}

}  // namespace

// A buffer of our own is filled, whose stack pointer is known: it is in this frame. That shows
// how it is kept, whichever C library this is.
[[gnu::noinline]] uint64_t jump_target(const void* buffer) {
  jmp_buf probe;
  (void)_setjmp(probe);  // no one jumps there
  const uint64_t kept = word_of(probe);
  const uint64_t wanted = word_of(buffer);
#if defined(__x86_64__)
  const auto end = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
  const uint64_t begin = reinterpret_cast<uint64_t>(&probe) - 256;
  const auto is_ours = [&](uint64_t stack) { return stack >= begin && stack < end; };
  if (is_ours(kept)) return wanted;
  uint64_t secret;
  asm("movq %%fs:0x30, %0" : "=r"(secret));
  return is_ours(rotate_back(kept) ^ secret) ? rotate_back(wanted) ^ secret : kUnknownStack;
#else
  uint64_t stack;
  asm volatile("mov %0, sp" : "=r"(stack));
  // The difference of two buffers is that of their stack pointers, with any secret. A stack pointer
  // is aligned to 16 bytes, and the jump goes up.
  const uint64_t target = kept ^ wanted ^ stack;
  return target % 16 == 0 ? target : kUnknownStack;
#endif
}

}  // namespace collect::agent
