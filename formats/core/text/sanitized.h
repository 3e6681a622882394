// Whether this is a build with a sanitizer: those reserve terabytes of addresses and use system
// calls of their own, so limits of memory and filters of system calls are left out.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COLLECT_SANITIZER_RUNTIME 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define COLLECT_SANITIZER_RUNTIME 1
#endif
#endif
#ifndef COLLECT_SANITIZER_RUNTIME
#define COLLECT_SANITIZER_RUNTIME 0
#endif

namespace collect {

inline constexpr bool kIsSanitized = COLLECT_SANITIZER_RUNTIME == 1;

}  // namespace collect
