#include "daemon/upload/s3/credential_sources.h"

#include <fmt/core.h>

#include <cstdlib>

#include "daemon/upload/s3/credential_file.h"
#include "daemon/upload/s3/web_identity.h"

namespace collect::upload {
namespace {

std::string first_of(std::string one, std::string other) {
  return one.empty() ? std::move(other) : std::move(one);
}

CredentialKind kind_of(const CredentialSettings& settings, const EnvironmentVariable& variable) {
  if (settings.kind != CredentialKind::kAuto) return settings.kind;
  if (!variable("AWS_ACCESS_KEY_ID").empty()) return CredentialKind::kEnvironment;
  if (!variable("AWS_WEB_IDENTITY_TOKEN_FILE").empty() && !variable("AWS_ROLE_ARN").empty()) {
    return CredentialKind::kWebIdentity;
  }
  return CredentialKind::kFile;
}

}  // namespace

std::string process_variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Result<Credentials> EnvironmentCredentials::get() {
  Credentials credentials{variable_("AWS_ACCESS_KEY_ID"), variable_("AWS_SECRET_ACCESS_KEY"),
                          variable_("AWS_SESSION_TOKEN")};
  if (credentials.access_key_id.empty() || credentials.secret_access_key.empty()) {
    return Error{Code::kPermission, "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY must be set"};
  }
  return credentials;
}

Result<Credentials> FileCredentials::get() {
  const uint64_t now = clock_.monotonic_ns();
  if (current_ && now - read_ns_ < kReadFileAgainNs) return *current_;
  const auto text = read_secret_file(path_, kMaxCredentialFileBytes);
  if (!text.ok()) return text.error();
  auto credentials = credentials_of_profile(*text, profile_, path_);
  if (!credentials.ok()) return credentials;
  current_ = *credentials;
  read_ns_ = now;
  return credentials;
}

Result<std::unique_ptr<CredentialsSource>> make_credentials_source(
    const CredentialSettings& settings, const EnvironmentVariable& variable,
    storage::Clock& clock) {
  switch (kind_of(settings, variable)) {
    case CredentialKind::kEnvironment:
      return std::unique_ptr<CredentialsSource>(new EnvironmentCredentials(variable));
    case CredentialKind::kWebIdentity: {
      WebIdentitySettings identity;
      identity.token_file = variable("AWS_WEB_IDENTITY_TOKEN_FILE");
      identity.role_arn = variable("AWS_ROLE_ARN");
      identity.session_name = first_of(variable("AWS_ROLE_SESSION_NAME"), identity.session_name);
      identity.sts_endpoint =
          first_of(first_of(settings.sts_endpoint, variable("AWS_ENDPOINT_URL_STS")),
                   fmt::format("https://sts.{}.amazonaws.com", settings.region));
      identity.http = settings.http;
      if (identity.token_file.empty() || identity.role_arn.empty()) {
        return Error{Code::kInvalidArgument,
                     "AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN must be set"};
      }
      return std::unique_ptr<CredentialsSource>(
          new WebIdentityCredentials(std::move(identity), clock));
    }
    default:
      break;
  }
  std::string path = first_of(settings.file, variable("AWS_SHARED_CREDENTIALS_FILE"));
  if (path.empty()) {
    const std::string home = variable("HOME");
    if (home.empty()) {
      return Error{Code::kInvalidArgument,
                   "no credentials: name a file, or set AWS_ACCESS_KEY_ID and "
                   "AWS_SECRET_ACCESS_KEY"};
    }
    path = home + "/.aws/credentials";
  }
  const std::string profile =
      first_of(first_of(settings.profile, variable("AWS_PROFILE")), "default");
  return std::unique_ptr<CredentialsSource>(new FileCredentials(path, profile, clock));
}

}  // namespace collect::upload
