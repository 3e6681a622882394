#include "daemon/upload/s3/s3_endpoint.h"

#include <fmt/core.h>

#include "daemon/upload/s3/uri.h"

namespace collect::upload {
namespace {

constexpr size_t kMinBucketName = 3;
constexpr size_t kMaxBucketName = 63;

bool is_bucket_name(std::string_view name) {
  if (name.size() < kMinBucketName || name.size() > kMaxBucketName) return false;
  for (const char c : name) {
    const bool is_letter = c >= 'a' && c <= 'z';
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_letter && !is_digit && c != '-' && c != '.') return false;
  }
  return name.front() != '.' && name.front() != '-' && name.find("..") == std::string_view::npos;
}

bool is_host(std::string_view host) {
  return !host.empty() && host.find_first_not_of(
                              "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                              "-.:[]") == std::string_view::npos;
}

}  // namespace

Result<S3Endpoint> S3Endpoint::parse(std::string_view url, std::string bucket, BucketStyle style) {
  S3Endpoint endpoint;
  std::string_view rest = url;
  if (rest.starts_with("https://")) {
    endpoint.is_tls_ = true;
    rest.remove_prefix(8);
  } else if (rest.starts_with("http://")) {
    rest.remove_prefix(7);
  } else {
    return Error{Code::kInvalidArgument,
                 fmt::format("endpoint '{}': must begin with https:// or http://", url)};
  }
  if (rest.ends_with('/')) rest.remove_suffix(1);
  if (!is_host(rest)) {
    return Error{Code::kInvalidArgument,
                 fmt::format("endpoint '{}': a host and perhaps a port must follow, no more", url)};
  }
  if (!is_bucket_name(bucket)) {
    return Error{Code::kInvalidArgument,
                 fmt::format("bucket '{}': 3 to 63 of a–z, 0–9, '-' and '.'", bucket)};
  }
  const std::string_view usual_port = endpoint.is_tls_ ? ":443" : ":80";
  if (rest.ends_with(usual_port)) rest.remove_suffix(usual_port.size());
  endpoint.style_ = style;
  endpoint.host_ =
      style == BucketStyle::kPath ? std::string(rest) : fmt::format("{}.{}", bucket, rest);
  endpoint.bucket_ = std::move(bucket);
  return endpoint;
}

std::string S3Endpoint::path_of(std::string_view key) const {
  std::string path = "/";
  if (style_ == BucketStyle::kPath) {
    path += encode_uri(bucket_);
    path += '/';
  }
  return path + encode_path(key);
}

std::string S3Endpoint::url_of(std::string_view key, const QueryFields& query) const {
  std::string url = (is_tls_ ? "https://" : "http://") + host_ + path_of(key);
  if (!query.empty()) url += "?" + canonical_query(query);
  return url;
}

}  // namespace collect::upload
