// Whether this program was built with a sanitizer: it then takes more time, keeps memory that it
// was asked to give back, and can't have its address space limited.
#pragma once

#include "formats/core/text/sanitized.h"

namespace collect::fakes {

inline constexpr bool kSanitized = kIsSanitized;

// ThreadSanitizer leaves every signal of a thread blocked after some handlers.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kLosesSignals = true;
#elif defined(__has_feature)
inline constexpr bool kLosesSignals = __has_feature(thread_sanitizer);
#else
inline constexpr bool kLosesSignals = false;
#endif

}  // namespace collect::fakes
