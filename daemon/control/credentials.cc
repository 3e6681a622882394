#include "daemon/control/credentials.h"

#include <grpcpp/security/tls_credentials_options.h>
#include <openssl/crypto.h>
#include <spdlog/spdlog.h>

#include <cstdlib>

namespace collect::control {
namespace {

// What browsers add to each request that a page makes, and pages can't leave out.
constexpr const char* kBrowserMetadata[] = {"origin", "sec-fetch-site", "sec-fetch-mode"};

constexpr std::string_view kScheme = "Bearer ";

// TLS 1.2 suites that no one can use, because no pre-shared key is ever set. The suites of 1.3 are
// on another list.
constexpr const char* kNoOlderSuites = "PSK-AES256-GCM-SHA384";

}  // namespace

void allow_tls_1_3_only() {
  ::setenv("GRPC_SSL_CIPHER_SUITES", kNoOlderSuites, 1);
}

void TokenCheck::set_token(std::string token) {
  const std::lock_guard lock(mutex_);
  token_ = std::move(token);
}

// In a time that depends on the lengths alone.
bool TokenCheck::holds(std::string_view shown) const {
  const std::lock_guard lock(mutex_);
  return token_.empty() || (shown.size() == token_.size() &&
                            CRYPTO_memcmp(shown.data(), token_.data(), shown.size()) == 0);
}

grpc::Status TokenCheck::Process(const InputMetadata& metadata, grpc::AuthContext*,
                                 OutputMetadata* consumed, OutputMetadata*) {
  // Within TLS browsers speak HTTP/2, and show the certificate of their user for any page. gRPC
  // 1.51 takes any content type.
  for (const char* key : kBrowserMetadata) {
    if (metadata.find(key) == metadata.end()) continue;
    return {grpc::StatusCode::PERMISSION_DENIED,
            fmt::format("this call comes from a web page (metadata \"{}\")", key)};
  }
  const auto found = metadata.find("authorization");
  std::string_view shown;
  if (found != metadata.end()) {
    shown = {found->second.data(), found->second.size()};
    // No handler needs to see it.
    consumed->emplace("authorization", std::string(shown));
    shown.remove_prefix(shown.starts_with(kScheme) ? kScheme.size() : shown.size());
  }
  if (holds(shown)) return grpc::Status::OK;
  log_refusal(!shown.empty());
  return {grpc::StatusCode::UNAUTHENTICATED,
          shown.empty() ? "this collector asks for a token: send the metadata \"authorization: "
                          "Bearer TOKEN\" (collectctl: --token-file FILE)"
                        : "the token is wrong"};
}

void TokenCheck::log_refusal(bool was_shown) {
  const std::lock_guard lock(mutex_);
  const uint64_t count = refusals_.count(std::chrono::steady_clock::now());
  if (count == 0) return;
  spdlog::warn("control: {} without the right token ({}); connected now: {}",
               count == 1 ? "a call" : fmt::format("{} calls", count),
               was_shown ? "the last one had a wrong one" : "the last one had none", suspects_());
}

std::shared_ptr<grpc::ServerCredentials> server_credentials(const ControlAccess& access,
                                                            std::shared_ptr<TokenCheck> check) {
  if (access.certificate.empty()) return grpc::InsecureServerCredentials();
  namespace tls = grpc::experimental;
  const auto files = std::make_shared<tls::FileWatcherCertificateProvider>(
      access.key, access.certificate, access.client_ca, kCertificateRefreshSeconds);
  tls::TlsServerCredentialsOptions options(files);
  options.watch_identity_key_cert_pairs();
  if (!access.client_ca.empty()) {
    options.watch_root_certs();
    options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  }
  auto credentials = tls::TlsServerCredentials(options);
  credentials->SetAuthMetadataProcessor(std::move(check));
  return credentials;
}

Status check_address(const std::string& address, bool is_reachable, const ControlAccess& access) {
  const bool is_tls = !access.certificate.empty();
  const bool is_asked = !access.token.empty() || !access.client_ca.empty();
  if (!is_reachable || (is_tls && is_asked)) return {};
  const std::string missing = is_tls     ? "control_token_file or tls_client_ca"
                              : is_asked ? "tls_certificate and tls_key"
                                         : "tls_certificate and tls_key, and control_token_file or "
                                           "tls_client_ca";
  return Error{Code::kInvalidArgument,
               fmt::format("control address {}: other machines can reach it, so it needs {}; "
                           "127.0.0.1, [::1] and unix:/path need nothing",
                           address, missing)};
}

}  // namespace collect::control
