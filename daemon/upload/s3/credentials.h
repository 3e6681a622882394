// Who asks: keys, and where they come from.
#pragma once

#include <cstdint>
#include <string>

#include "formats/core/result.h"

namespace collect::upload {

struct Credentials {
  std::string access_key_id{};
  std::string secret_access_key{};
  std::string session_token{};   // empty: keys that last
  uint64_t expires_unix_ns = 0;  // 0: never, or no one said
};

// Used by one S3Client, on its thread.
class CredentialsSource {
 public:
  virtual ~CredentialsSource() = default;
  // What holds now. Errors name the file, the variable or the service that did not give it.
  // kUnavailable: a later try may; kPermission: no one gives any, or the service refuses.
  virtual Result<Credentials> get() = 0;
  // The server says that what get() gave has expired: the next get() asks again.
  virtual void invalidate() {}
  // Ends what get() waits for. Any thread.
  virtual void cancel() {}
};

class StaticCredentials final : public CredentialsSource {
 public:
  explicit StaticCredentials(Credentials credentials) : credentials_(std::move(credentials)) {}
  Result<Credentials> get() override { return credentials_; }

 private:
  const Credentials credentials_;
};

}  // namespace collect::upload
