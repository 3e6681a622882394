#include "daemon/upload/s3/digests.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "formats/core/result.h"

namespace collect::upload {
namespace {

template <class Digest>
Digest digest_of(Bytes bytes, const EVP_MD* kind) {
  Digest digest;
  unsigned size = 0;
  COLLECT_CHECK(EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, kind, nullptr) == 1);
  COLLECT_CHECK(size == digest.size());
  return digest;
}

}  // namespace

Sha256 sha256(Bytes bytes) {
  return digest_of<Sha256>(bytes, EVP_sha256());
}
Md5 md5(Bytes bytes) {
  return digest_of<Md5>(bytes, EVP_md5());
}

Sha256 hmac_sha256(Bytes key, std::string_view text) {
  Sha256 digest;
  unsigned size = 0;
  COLLECT_CHECK(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                     reinterpret_cast<const uint8_t*>(text.data()), text.size(), digest.data(),
                     &size) != nullptr);
  return digest;
}

std::string base64_crc32c(uint32_t crc) {
  const uint8_t bytes[4] = {static_cast<uint8_t>(crc >> 24), static_cast<uint8_t>(crc >> 16),
                            static_cast<uint8_t>(crc >> 8), static_cast<uint8_t>(crc)};
  return base64(bytes);
}

}  // namespace collect::upload
