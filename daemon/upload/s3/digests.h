// Digests as S3 wants them in headers, by OpenSSL. No state; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "formats/core/bytes.h"
#include "formats/core/text/base64.h"

namespace collect::upload {

using Sha256 = std::array<uint8_t, 32>;
using Md5 = std::array<uint8_t, 16>;

Sha256 sha256(Bytes bytes);
Sha256 hmac_sha256(Bytes key, std::string_view text);
Md5 md5(Bytes bytes);
// Base64 of the checksum's four bytes, the highest first: x-amz-checksum-crc32c.
std::string base64_crc32c(uint32_t crc);

inline Bytes bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}
inline std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace collect::upload
