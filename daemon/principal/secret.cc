#include "daemon/principal/secret.h"

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstdint>

#include "formats/core/text/hex.h"

namespace collect::principal {

Result<std::string> make_secret() {
  std::array<uint8_t, kSecretBytes> bytes;
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return errno_error(errno, "getrandom");
  }
  return hex_bytes(bytes);
}

}  // namespace collect::principal
