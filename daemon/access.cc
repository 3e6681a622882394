#include "daemon/access.h"

#include <spdlog/spdlog.h>

namespace collect::daemon {
namespace {

Result<std::string> read_token(const char* key, const std::string& path) {
  if (path.empty()) return std::string();
  Result<std::string> token = read_token_file(path);
  if (!token.ok()) return Error{token.code(), key + (": " + token.error().message)};
  if (const std::string exposed = ingest::exposure_of(path); !exposed.empty()) {
    spdlog::warn("{}: {}", key, exposed);
  }
  return token;
}

Error missing(const std::string& what) {
  return {Code::kInvalidArgument, what};
}

}  // namespace

Result<Access> read_access(const Config& config) {
  const bool is_tls = !config.tls_certificate.empty();
  if (is_tls != !config.tls_key.empty()) {
    return missing(is_tls ? "tls_certificate needs tls_key, the file with its private key"
                          : "tls_key needs tls_certificate, the file with its certificate");
  }
  if (!is_tls && !config.tls_client_ca.empty()) {
    return missing("tls_client_ca needs tls_certificate and tls_key");
  }
  if (!is_tls && !config.control_token_file.empty()) {
    return missing(
        "control_token_file needs tls_certificate and tls_key: without TLS the token could be read "
        "on the way");
  }
  Access access;
  Result<principal::LocalAccess> local = principal::LocalAccess::parse(config.local_access);
  if (!local.ok()) return local.error();
  access.local = std::move(local).value();
  access.control.local = access.local;
  Result<std::string> token = read_token("token_file", config.token_file);
  if (!token.ok()) return token.error();
  access.token = std::move(token).value();
  Result<std::string> guest_token = read_token("guest_token_file", config.guest_token_file);
  if (!guest_token.ok()) return guest_token.error();
  access.guest_token = std::move(guest_token).value();
  Result<std::string> control_token = read_token("control_token_file", config.control_token_file);
  if (!control_token.ok()) return control_token.error();
  access.control.token = std::move(control_token).value();
  if (is_tls) {
    access.control.certificate = config.tls_certificate;
    access.control.key = config.tls_key;
    access.control.client_ca = config.tls_client_ca;
    auto tls =
        ingest::TlsContext::load({config.tls_certificate, config.tls_key, config.tls_client_ca});
    if (!tls.ok()) return tls.error();
    access.tls = std::move(tls).value();
  }
  return access;
}

}  // namespace collect::daemon
