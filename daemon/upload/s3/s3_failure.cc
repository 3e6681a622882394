#include "daemon/upload/s3/s3_failure.h"

#include <algorithm>
#include <array>

#include "daemon/upload/s3/s3_xml.h"

namespace collect::upload {
namespace {

constexpr size_t kMaxFailureText = 300;  // of what a server says, in our sentences

bool is_one_of(std::string_view code, auto&... codes) {
  return ((code == codes) || ...);
}

std::string shown(std::string text) {
  if (text.size() > kMaxFailureText) text.resize(kMaxFailureText);
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<uint8_t>(c) < 32; }, ' ');
  return text;
}

}  // namespace

bool is_clock_failure(std::string_view s3_code) {
  return s3_code == "RequestTimeTooSkewed";
}

bool is_expiry(std::string_view s3_code) {
  return is_one_of(s3_code, "ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired",
                   "RequestExpired");
}

S3Failure read_failure(std::string_view body) {
  const Result<XmlElement> xml = read_xml(body);
  if (!xml.ok()) return {};
  // S3: <Error><Code>; STS: <ErrorResponse><Error><Code>.
  const XmlElement* error = xml->name == "Error" ? &*xml : xml->child("Error");
  if (error == nullptr) return {};
  return {shown(error->child_text("Code")), shown(error->child_text("Message"))};
}

Code code_of(int status, std::string_view s3_code) {
  // The first may have been said of bytes that the network damaged.
  if (is_one_of(s3_code, "BadDigest", "XAmzContentSHA256Mismatch", "XAmzContentChecksumMismatch",
                "IncompleteBody", "RequestTimeout", "SlowDown", "InternalError",
                "ServiceUnavailable", "OperationAborted", "ConditionalRequestConflict") ||
      is_clock_failure(s3_code) || is_expiry(s3_code)) {
    return Code::kUnavailable;
  }
  if (s3_code == "NoSuchBucket") return Code::kInvalidArgument;
  switch (status) {
    case 401:
    case 403:
      return Code::kPermission;
    case 404:
      return Code::kNotFound;
    case 412:
      return Code::kAlreadyExists;
    case 408:
    case 409:
    case 429:
      return Code::kUnavailable;
    case 501:
      return Code::kUnsupported;
    default:
      break;
  }
  // A server that answers 200 and an error has begun what the request wanted.
  return status >= 500 || status == 200 ? Code::kUnavailable : Code::kInvalidArgument;
}

}  // namespace collect::upload
