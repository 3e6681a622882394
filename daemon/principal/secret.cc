#include "daemon/principal/secret.h"

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstdint>

namespace collect::principal {

Result<std::string> make_secret() {
  constexpr char kHex[] = "0123456789abcdef";
  std::array<uint8_t, kSecretBytes> bytes;
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return errno_error(errno, "getrandom");
  }
  std::string digits;
  for (const uint8_t byte : bytes) digits += {kHex[byte >> 4], kHex[byte & 15]};
  return digits;
}

}  // namespace collect::principal
