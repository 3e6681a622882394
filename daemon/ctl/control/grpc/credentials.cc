#include "daemon/ctl/control/grpc/credentials.h"

#include <fmt/core.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <cstdlib>
#include <utility>

#include "daemon/ctl/control/connection/credential_files.h"

namespace collect::ctl {
namespace {

// "authorization: Bearer TOKEN" with every call. gRPC sends it within TLS only.
class Bearer final : public grpc::MetadataCredentialsPlugin {
 public:
  explicit Bearer(std::string token) : value_("Bearer " + std::move(token)) {}
  bool IsBlocking() const override { return false; }
  grpc::Status GetMetadata(grpc::string_ref, grpc::string_ref, const grpc::AuthContext&,
                           std::multimap<grpc::string, grpc::string>* metadata) override {
    metadata->emplace("authorization", value_);
    return grpc::Status::OK;
  }
  // What a debugger of gRPC prints: never the token.
  grpc::string DebugString() override { return "bearer token"; }

 private:
  const std::string value_;
};

Result<std::shared_ptr<grpc::CallCredentials>> token_credentials(const std::string& path) {
  Result<std::string> token = read_token("--token-file", path);
  if (!token.ok()) return token.error();
  return grpc::MetadataCredentialsFromPlugin(std::make_unique<Bearer>(std::move(token).value()));
}

bool holds(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

Result<std::shared_ptr<grpc::ChannelCredentials>> channel_credentials(const ControlTarget& target) {
  const bool is_unix = target.address.starts_with("unix:");
  if (is_unix || target.tls_ca.empty()) {
    if (!is_unix && (!target.token_file.empty() || !target.tls_certificate.empty())) {
      return Error{Code::kInvalidArgument,
                   "a token or a certificate is sent over TLS only: give --tls-ca FILE, the CA "
                   "certificate that signed the collector's"};
    }
    return std::shared_ptr<grpc::ChannelCredentials>();
  }
  if (target.tls_certificate.empty() != target.tls_key.empty()) {
    return Error{Code::kInvalidArgument, "--tls-certificate and --tls-key belong together"};
  }
  // As allow_tls_1_3_only() of the server: no suite of older versions can be used.
  ::setenv("GRPC_SSL_CIPHER_SUITES", "PSK-AES256-GCM-SHA384", 0);
  grpc::SslCredentialsOptions options;
  Result<std::string> ca = read_pem("--tls-ca", target.tls_ca);
  if (!ca.ok()) return ca.error();
  options.pem_root_certs = std::move(ca).value();
  if (!target.tls_certificate.empty()) {
    Result<std::string> certificate = read_pem("--tls-certificate", target.tls_certificate);
    if (!certificate.ok()) return certificate.error();
    options.pem_cert_chain = std::move(certificate).value();
    Result<std::string> key = read_pem("--tls-key", target.tls_key);
    if (!key.ok()) return key.error();
    options.pem_private_key = std::move(key).value();
  }
  auto channel = grpc::SslCredentials(options);
  if (channel == nullptr) return Error{Code::kInvalidArgument, "the TLS files can't be used"};
  if (target.token_file.empty()) return channel;
  auto token = token_credentials(target.token_file);
  if (!token.ok()) return token.error();
  return grpc::CompositeChannelCredentials(channel, *token);
}

std::string tls_advice(const ControlTarget& target, const std::string& reason) {
  if (target.tls_ca.empty()) {
    // A server that speaks TLS ends a plain connection without an answer.
    return holds(reason, "Socket closed") || holds(reason, "reset by peer") ||
                   holds(reason, "GOAWAY")
               ? "something answers but speaks no plain gRPC; if the collector uses TLS, give "
                 "--tls-ca FILE, the CA certificate that signed its own"
               : "";
  }
  if (holds(reason, "CERTIFICATE_VERIFY_FAILED") || holds(reason, "certificate verify failed")) {
    return fmt::format(
        "its certificate is not signed by {}, or is out of date; --tls-ca FILE is the CA "
        "certificate that signed it",
        target.tls_ca);
  }
  if (holds(reason, "Hostname Verification") || holds(reason, "Peer name") ||
      holds(reason, "not in peer certificate")) {
    return "its certificate is for another name; --tls-name NAME says which";
  }
  if (holds(reason, "wrong version number") || holds(reason, "WRONG_VERSION_NUMBER")) {
    return "it speaks no TLS there; leave --tls-ca out";
  }
  if (holds(reason, "alert") || holds(reason, "Socket closed") || holds(reason, "reset by peer") ||
      holds(reason, "handshake failed")) {
    return target.tls_certificate.empty()
               ? "it ends the connection; if it asks for a client certificate, show one with "
                 "--tls-certificate FILE --tls-key FILE"
               : fmt::format(
                     "it ends the connection; perhaps it does not trust the CA that signed {}, or "
                     "that is out of date",
                     target.tls_certificate);
  }
  return {};
}

}  // namespace collect::ctl
