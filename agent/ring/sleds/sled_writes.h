// What writing code needs beside the writing.
#pragma once

#include <cstdint>

// Code is data to no one but those who write it: ThreadSanitizer keeps no notes of it, and can't.
// clang's no_sanitize leaves atomics to the sanitizer.
#if defined(__clang__) && defined(__has_attribute)
#if __has_attribute(disable_sanitizer_instrumentation)
#define COLLECT_WRITES_CODE __attribute__((disable_sanitizer_instrumentation))
#endif
#endif
#ifndef COLLECT_WRITES_CODE
#define COLLECT_WRITES_CODE __attribute__((no_sanitize("thread")))
#endif

namespace collect::agent {

inline void forget_cached(uint64_t address, uint64_t bytes) {
  __builtin___clear_cache(reinterpret_cast<char*>(address),
                          reinterpret_cast<char*>(address + bytes));
}

}  // namespace collect::agent
