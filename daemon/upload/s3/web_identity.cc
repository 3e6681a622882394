#include "daemon/upload/s3/web_identity.h"

#include <curl/curl.h>
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <ctime>

#include "daemon/upload/s3/credential_file.h"
#include "daemon/upload/s3/digests.h"
#include "daemon/upload/s3/s3_failure.h"
#include "daemon/upload/s3/s3_xml.h"
#include "daemon/upload/s3/uri.h"

namespace collect::upload {
namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;

std::string without_end_of_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text;
}

// Absent: not so many digits.
std::optional<int> digits_at(std::string_view text, size_t at, size_t count) {
  int number = 0;
  const char* const first = text.data() + at;
  const auto [end, error] = std::from_chars(first, first + count, number);
  if (error != std::errc() || end != first + count || number < 0) return std::nullopt;
  return number;
}

// How long what ends at `expiration` lasts, by the clock of the one who says so.
uint64_t lifetime_s(const HttpAnswer& answer, uint64_t expiration, uint64_t our_unix_s) {
  const std::string* date = answer.header("date");
  const time_t theirs = date == nullptr ? -1 : curl_getdate(date->c_str(), nullptr);
  const uint64_t now = theirs < 0 ? our_unix_s : static_cast<uint64_t>(theirs);
  return expiration > now ? expiration - now : 0;
}

}  // namespace

std::optional<uint64_t> parse_utc(std::string_view text) {
  constexpr std::string_view kShape = "dddd-dd-ddTdd:dd:dd";
  if (text.size() <= kShape.size() || !text.ends_with('Z')) return std::nullopt;
  for (size_t i = 0; i < kShape.size(); ++i) {
    const bool is_digit = text[i] >= '0' && text[i] <= '9';
    if (kShape[i] == 'd' ? !is_digit : text[i] != kShape[i]) return std::nullopt;
  }
  tm parts{};
  parts.tm_year = *digits_at(text, 0, 4) - 1900;
  parts.tm_mon = *digits_at(text, 5, 2) - 1;
  parts.tm_mday = *digits_at(text, 8, 2);
  parts.tm_hour = *digits_at(text, 11, 2);
  parts.tm_min = *digits_at(text, 14, 2);
  parts.tm_sec = *digits_at(text, 17, 2);
  const time_t seconds = ::timegm(&parts);
  if (seconds < 0) return std::nullopt;
  return static_cast<uint64_t>(seconds);
}

Result<Credentials> WebIdentityCredentials::get() {
  const uint64_t now = clock_.unix_ns();
  if (current_ && now < renew_unix_ns_) return *current_;
  auto asked = ask();
  if (asked.ok()) {
    current_ = *asked;
    const uint64_t early =
        asked->expires_unix_ns - std::min(asked->expires_unix_ns, kRenewBeforeNs);
    renew_unix_ns_ = std::max(early, now + kLeastRenewalNs);
    return asked;
  }
  if (current_ && now < current_->expires_unix_ns) return *current_;
  return asked;
}

Result<Credentials> WebIdentityCredentials::ask() {
  const auto token = read_secret_file(settings_.token_file, kMaxTokenBytes);
  if (!token.ok()) return token.error();
  const std::string form = fmt::format(
      "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn={}&RoleSessionName={}&"
      "WebIdentityToken={}",
      encode_uri(settings_.role_arn), encode_uri(settings_.session_name),
      encode_uri(without_end_of_line(*token)));
  HttpRequest request;
  request.method = "POST";
  request.url = settings_.sts_endpoint + (settings_.sts_endpoint.ends_with('/') ? "" : "/");
  request.headers = {{"content-type", "application/x-www-form-urlencoded"}};
  request.body = bytes_of(form);
  request.most_answer_bytes = kMaxTokenBytes;
  const auto answer = http_.perform(request);
  if (!answer.ok()) return answer.error();
  const std::string place = fmt::format(
      "{}: AssumeRoleWithWebIdentity of {}: ", settings_.sts_endpoint, settings_.role_arn);
  if (answer->status != 200) {
    const S3Failure failure = read_failure(answer->body);
    const Code code = code_of(answer->status, failure.code);
    return Error{code == Code::kUnavailable ? code : Code::kPermission,
                 fmt::format("{}{} {} {}", place, answer->status, failure.code, failure.message)};
  }
  const auto xml = read_xml(answer->body);
  if (!xml.ok()) return Error{Code::kUnavailable, place + xml.error().message};
  const XmlElement* result = xml->child("AssumeRoleWithWebIdentityResult");
  const XmlElement* keys = result == nullptr ? nullptr : result->child("Credentials");
  if (keys == nullptr) return Error{Code::kUnavailable, place + "no <Credentials> in the answer"};
  Credentials credentials{keys->child_text("AccessKeyId"), keys->child_text("SecretAccessKey"),
                          keys->child_text("SessionToken")};
  const auto expiration = parse_utc(keys->child_text("Expiration"));
  if (credentials.access_key_id.empty() || credentials.secret_access_key.empty() || !expiration) {
    return Error{Code::kUnavailable, place + "<Credentials> without keys or their end"};
  }
  const uint64_t now = clock_.unix_ns();
  credentials.expires_unix_ns = now + lifetime_s(*answer, *expiration, now / kSecondNs) * kSecondNs;
  return credentials;
}

}  // namespace collect::upload
