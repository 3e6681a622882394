// AWS Signature Version 4: proves to an S3 server who asks, without sending the secret. libcurl has
// a signer too; versions of it differ in how they write path and query, and servers refuse what
// differs (UPLOAD.md "Signing").
//
// No state but its constants; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/upload/s3/credentials.h"
#include "daemon/upload/s3/http_message.h"

namespace collect::upload {

// Where no one signs the body: over TLS, which protects it already.
inline constexpr char kUnsignedPayload[] = "UNSIGNED-PAYLOAD";

struct RequestToSign {
  std::string_view method;
  std::string_view host;   // as the Host header has it, with a port that is not the scheme's own
  std::string_view path;   // encoded once: encode_path()
  std::string_view query;  // canonical_query()
  std::string_view payload_hash;  // 64 hexadecimal digits, or kUnsignedPayload
};

class S3Signer {
 public:
  explicit S3Signer(std::string region, std::string service = "s3")
      : region_(std::move(region)), service_(std::move(service)) {}

  // Adds x-amz-date, x-amz-content-sha256, x-amz-security-token and authorization to `headers`. All
  // that is in them, and the host, is signed.
  void sign(const RequestToSign& request, const Credentials& credentials, uint64_t unix_s,
            std::vector<HttpField>& headers) const;

 private:
  std::string signature(const Credentials& credentials, const std::string& time,
                        const std::string& scope, const std::string& canonical) const;

  const std::string region_;
  const std::string service_;
};

}  // namespace collect::upload
