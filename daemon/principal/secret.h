// Secrets that a peer shows to be admitted.
#pragma once

#include <cstddef>
#include <string>

#include "formats/core/result.h"

namespace collect::principal {

inline constexpr size_t kSecretBytes = 32;

// So many bytes of the system's random ones, as hexadecimal digits. kIo: it has none.
Result<std::string> make_secret();

}  // namespace collect::principal
