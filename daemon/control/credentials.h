// TLS and tokens of the control plane, in gRPC's terms.
#pragma once

#include <grpcpp/security/auth_metadata_processor.h>
#include <grpcpp/security/server_credentials.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "daemon/control/control_access.h"
#include "daemon/control/relay/refusal_log.h"

namespace collect::control {

// gRPC looks at the certificate files this often.
inline constexpr unsigned kCertificateRefreshSeconds = 2;
// Log lines about calls without the right token.
inline constexpr std::chrono::seconds kRefusalLogPeriod{10};

// Checks the token of every call, of reflection and health too, before its handler runs. An
// interceptor would come too late: the handler runs first.
//
// Thread-safe: gRPC's threads ask, any thread changes the token.
class TokenCheck final : public grpc::AuthMetadataProcessor {
 public:
  // Who may have been it, for the log: gRPC does not say whose call is checked.
  using Suspects = std::function<std::string()>;

  TokenCheck(std::string token, Suspects suspects)
      : token_(std::move(token)), suspects_(std::move(suspects)) {}

  void set_token(std::string token);

  bool IsBlocking() const override { return false; }
  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext* context,
                       OutputMetadata* consumed, OutputMetadata* response) override;

 private:
  bool holds(std::string_view shown) const;
  void log_refusal(bool was_shown);

  mutable std::mutex mutex_;
  std::string token_;  // guarded by mutex_
  const Suspects suspects_;
  RefusalLog refusals_{kRefusalLogPeriod};  // guarded by mutex_
};

// Insecure without a certificate.
std::shared_ptr<grpc::ServerCredentials> server_credentials(const ControlAccess& access,
                                                            std::shared_ptr<TokenCheck> check);

// Whether the address may be served with this; the sentence says what is missing.
Status check_address(const std::string& address, bool is_reachable, const ControlAccess& access);

}  // namespace collect::control
