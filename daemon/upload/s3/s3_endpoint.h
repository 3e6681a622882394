// Where a bucket is: server, bucket, and how its name travels. Constant after parsing; any thread.
#pragma once

#include <string>
#include <string_view>

#include "daemon/upload/s3/http_message.h"
#include "formats/core/result.h"

namespace collect::upload {

inline constexpr size_t kMaxKeyBytes = 1024;  // S3's own limit

enum class BucketStyle : uint8_t {
  kPath,         // https://host/bucket/key: servers of one's own
  kVirtualHost,  // https://bucket.host/key: AWS
};

class S3Endpoint {
 public:
  // `url`: "https://s3.eu-west-1.amazonaws.com", "http://127.0.0.1:9000"; no path, no query, no
  // user. kInvalidArgument with the rule that was broken.
  static Result<S3Endpoint> parse(std::string_view url, std::string bucket, BucketStyle style);

  bool is_tls() const { return is_tls_; }
  const std::string& bucket() const { return bucket_; }
  const std::string& host() const { return host_; }  // as the Host header has it
  // Encoded. An empty key is the bucket itself.
  std::string path_of(std::string_view key) const;
  std::string url_of(std::string_view key, const QueryFields& query) const;
  std::string name() const { return "s3://" + bucket_; }

 private:
  bool is_tls_ = false;
  BucketStyle style_ = BucketStyle::kPath;
  std::string bucket_;
  std::string host_;
};

}  // namespace collect::upload
