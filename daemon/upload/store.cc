#include "daemon/upload/store.h"

#include <fmt/core.h>

#include <chrono>
#include <initializer_list>
#include <random>
#include <thread>
#include <utility>

#include "daemon/upload/s3/credential_sources.h"

namespace collect::upload {
namespace {

constexpr RetrySettings kPatience{100, 2'000, 6};

std::string first_of(const std::string& given, std::initializer_list<const char*> variables) {
  std::string value = given;
  for (const char* variable : variables) {
    if (value.empty()) value = process_variable(variable);
  }
  return value;
}

}  // namespace

Result<OpenedLocation> open_location(const StoreLocation& location, storage::Clock& clock) {
  const auto url = parse_store_url(location.url);
  if (!url.ok()) return url.error();
  OpenedLocation opened;
  opened.below = url->below;
  S3Settings& settings = opened.settings;
  settings.bucket = url->bucket;
  settings.max_bytes_per_s = location.max_bytes_per_s;
  const std::string region = first_of(location.region, {"AWS_REGION", "AWS_DEFAULT_REGION"});
  if (!region.empty()) settings.region = region;
  settings.http.ca_file = process_variable("AWS_CA_BUNDLE");
  settings.endpoint = first_of(location.endpoint, {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"});
  if (settings.endpoint.empty()) {
    settings.endpoint = fmt::format("https://s3.{}.amazonaws.com", settings.region);
    settings.style = BucketStyle::kVirtualHost;
  }
  CredentialSettings credentials;
  credentials.region = settings.region;
  credentials.http = settings.http;
  auto source = make_credentials_source(credentials, process_variable, clock);
  if (!source.ok()) return source.error();
  opened.credentials = std::move(*source);
  return opened;
}

bool SleepingPauses::pause(uint64_t ns) {
  std::this_thread::sleep_for(std::chrono::nanoseconds(ns));
  return true;
}

Result<std::unique_ptr<Store>> Store::open(const StoreLocation& location,
                                           std::function<void(const Error&)> failed) {
  storage::Clock& clock = storage::system_clock();
  auto opened = open_location(location, clock);
  if (!opened.ok()) return opened.error();
  auto client = S3Client::create(opened->settings, *opened->credentials, clock);
  if (!client.ok()) return client.error();
  return std::unique_ptr<Store>(
      new Store(std::move(*opened), std::move(*client), clock, std::move(failed)));
}

Store::Store(OpenedLocation location, std::unique_ptr<S3Client> client, storage::Clock& clock,
             std::function<void(const Error&)> failed)
    : location_(std::move(location)),
      client_(std::move(client)),
      clock_(clock),
      retries_(kPatience, pauses_, std::random_device()(), std::move(failed)) {}

}  // namespace collect::upload
