// Where credentials come from: UPLOAD.md "Credentials".
//
// Each object is used on one thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "daemon/upload/s3/credentials.h"
#include "daemon/upload/s3/http_connection.h"
#include "storage/fs/clock.h"

namespace collect::upload {

inline constexpr uint64_t kReadFileAgainNs = 60ull * 1'000'000'000;

// A variable of the environment; empty: it is not set.
using EnvironmentVariable = std::function<std::string(const char* name)>;
std::string process_variable(const char* name);  // of this process

// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN.
class EnvironmentCredentials final : public CredentialsSource {
 public:
  explicit EnvironmentCredentials(EnvironmentVariable variable) : variable_(std::move(variable)) {}
  Result<Credentials> get() override;

 private:
  const EnvironmentVariable variable_;
};

// A profile of a file, read again after kReadFileAgainNs, and when what it said has expired.
class FileCredentials final : public CredentialsSource {
 public:
  FileCredentials(std::string path, std::string profile, storage::Clock& clock)
      : path_(std::move(path)), profile_(std::move(profile)), clock_(clock) {}
  Result<Credentials> get() override;
  void invalidate() override { current_.reset(); }

 private:
  const std::string path_;
  const std::string profile_;
  storage::Clock& clock_;
  std::optional<Credentials> current_;
  uint64_t read_ns_ = 0;
};

enum class CredentialKind : uint8_t { kAuto, kEnvironment, kFile, kWebIdentity };

struct CredentialSettings {
  CredentialKind kind = CredentialKind::kAuto;
  // Empty: AWS_SHARED_CREDENTIALS_FILE, ~/.aws/credentials; AWS_PROFILE, "default".
  std::string file{};
  std::string profile{};
  // Empty: AWS_ENDPOINT_URL_STS, https://sts.REGION.amazonaws.com.
  std::string sts_endpoint{};
  std::string region = "us-east-1";
  HttpSettings http{};
};

// kAuto: the environment where AWS_ACCESS_KEY_ID is set, web identity where its two variables are,
// else the file. `clock` outlives it. kInvalidArgument: what is missing.
Result<std::unique_ptr<CredentialsSource>> make_credentials_source(
    const CredentialSettings& settings, const EnvironmentVariable& variable, storage::Clock& clock);

}  // namespace collect::upload
