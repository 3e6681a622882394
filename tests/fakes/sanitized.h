// Whether this program was built with a sanitizer: it then takes more time, keeps memory that it
// was asked to give back, and can't have its address space limited.
#pragma once

namespace collect::fakes {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// ThreadSanitizer leaves every signal of a thread blocked after some handlers.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kLosesSignals = true;
#else
inline constexpr bool kLosesSignals = false;
#endif

}  // namespace collect::fakes
