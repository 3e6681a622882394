// A store as a request names it: settings, credentials and a client, ready to be asked.
//
// Each object is used on one thread.
#pragma once

#include <fmt/core.h>

#include <functional>
#include <memory>
#include <string>

#include "daemon/upload/s3/credentials.h"
#include "daemon/upload/s3/retry.h"
#include "daemon/upload/s3/s3_client.h"
#include "daemon/upload/store_request.h"
#include "storage/fs/clock.h"

namespace collect::upload {

struct OpenedLocation {
  S3Settings settings{};
  std::string below{};  // what the keys begin with
  std::unique_ptr<CredentialsSource> credentials{};
};

// From the request, else from the environment. kInvalidArgument: what is wrong or missing there.
// `clock` outlives the credentials.
Result<OpenedLocation> open_location(const StoreLocation& location, storage::Clock& clock);

// Waits on its thread.
class SleepingPauses final : public Pauses {
 public:
  bool pause(uint64_t ns) override;
};

// For a person who waits: what may pass is tried again for some seconds, and then it is an error.
class Store {
 public:
  // `failed`: an attempt that will be made again.
  static Result<std::unique_ptr<Store>> open(const StoreLocation& location,
                                             std::function<void(const Error&)> failed);

  S3Client& client() { return *client_; }
  Retries& retries() { return retries_; }
  Pauses& pauses() { return pauses_; }
  storage::Clock& clock() { return clock_; }
  const std::string& below() const { return location_.below; }
  uint64_t max_bytes_per_s() const { return location_.settings.max_bytes_per_s; }
  // "s3://BUCKET/v1/…"
  std::string url_of(const std::string& key) const {
    return fmt::format("{}{}/{}", kStoreUrlScheme, location_.settings.bucket, key);
  }

 private:
  Store(OpenedLocation location, std::unique_ptr<S3Client> client, storage::Clock& clock,
        std::function<void(const Error&)> failed);

  const OpenedLocation location_;
  const std::unique_ptr<S3Client> client_;
  storage::Clock& clock_;
  SleepingPauses pauses_;
  Retries retries_;
};

}  // namespace collect::upload
