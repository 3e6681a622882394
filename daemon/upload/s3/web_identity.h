// Keys for the service account of a pod: Kubernetes writes a token into a file, and STS gives keys
// that last an hour for it. UPLOAD.md "Credentials".
//
// Used on one thread; cancel() may be called from any.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "daemon/upload/s3/credentials.h"
#include "daemon/upload/s3/http_connection.h"
#include "storage/fs/clock.h"

namespace collect::upload {

inline constexpr size_t kMaxTokenBytes = 64u << 10;
inline constexpr uint64_t kRenewBeforeNs = 300ull * 1'000'000'000;  // their end
// A service that gives keys for less is asked no more often than so.
inline constexpr uint64_t kLeastRenewalNs = 30ull * 1'000'000'000;

struct WebIdentitySettings {
  std::string token_file{};  // AWS_WEB_IDENTITY_TOKEN_FILE; read for each request: it is rotated
  std::string role_arn{};    // AWS_ROLE_ARN
  std::string session_name = "collectord";  // AWS_ROLE_SESSION_NAME
  std::string sts_endpoint{};               // "https://sts.eu-west-1.amazonaws.com"
  HttpSettings http{};
};

class WebIdentityCredentials final : public CredentialsSource {
 public:
  // `clock` outlives it.
  WebIdentityCredentials(WebIdentitySettings settings, storage::Clock& clock)
      : settings_(std::move(settings)), clock_(clock), http_(settings_.http) {}

  // Where new ones cannot be had, the old ones are given until they end.
  Result<Credentials> get() override;
  void invalidate() override { current_.reset(); }
  void cancel() override { http_.cancel(); }

 private:
  Result<Credentials> ask();

  const WebIdentitySettings settings_;
  storage::Clock& clock_;
  HttpConnection http_;
  std::optional<Credentials> current_;
  uint64_t renew_unix_ns_ = 0;
};

// "2026-01-31T23:59:59Z", also with a fraction, in seconds since 1970.
std::optional<uint64_t> parse_utc(std::string_view text);

}  // namespace collect::upload
