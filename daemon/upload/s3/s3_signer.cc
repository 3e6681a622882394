#include "daemon/upload/s3/s3_signer.h"

#include <fmt/core.h>

#include <algorithm>
#include <ctime>

#include "daemon/upload/s3/digests.h"
#include "formats/core/text/hex.h"

namespace collect::upload {
namespace {

constexpr char kAlgorithm[] = "AWS4-HMAC-SHA256";

// "20130524T000000Z"
std::string basic_time(uint64_t unix_s) {
  const auto seconds = static_cast<time_t>(unix_s);
  tm parts{};
  COLLECT_CHECK(::gmtime_r(&seconds, &parts) != nullptr);
  char text[32];
  COLLECT_CHECK(std::strftime(text, sizeof text, "%Y%m%dT%H%M%SZ", &parts) > 0);
  return text;
}

// Without spaces at the ends, and runs of them within as one.
std::string trimmed(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (c == ' ' && (out.empty() || out.back() == ' ')) continue;
    out += c;
  }
  if (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

}  // namespace

void S3Signer::sign(const RequestToSign& request, const Credentials& credentials, uint64_t unix_s,
                    std::vector<HttpField>& headers) const {
  const std::string time = basic_time(unix_s);
  headers.push_back({"x-amz-date", time});
  headers.push_back({"x-amz-content-sha256", std::string(request.payload_hash)});
  if (!credentials.session_token.empty()) {
    headers.push_back({"x-amz-security-token", credentials.session_token});
  }
  std::vector<HttpField> all = headers;
  all.push_back({"host", std::string(request.host)});
  std::sort(all.begin(), all.end(),
            [](const HttpField& a, const HttpField& b) { return a.name < b.name; });
  std::string names;
  std::string canonical;
  canonical.append(request.method).append("\n").append(request.path).append("\n");
  canonical.append(request.query).append("\n");
  for (const HttpField& field : all) {
    canonical.append(field.name).append(":").append(trimmed(field.value)).append("\n");
    if (!names.empty()) names += ';';
    names += field.name;
  }
  canonical.append("\n").append(names).append("\n").append(request.payload_hash);

  const std::string scope =
      fmt::format("{}/{}/{}/aws4_request", time.substr(0, 8), region_, service_);
  headers.push_back(
      {"authorization", fmt::format("{} Credential={}/{},SignedHeaders={},Signature={}", kAlgorithm,
                                    credentials.access_key_id, scope, names,
                                    signature(credentials, time, scope, canonical))});
}

std::string S3Signer::signature(const Credentials& credentials, const std::string& time,
                                const std::string& scope, const std::string& canonical) const {
  const std::string text = fmt::format("{}\n{}\n{}\n{}", kAlgorithm, time, scope,
                                       hex_bytes(sha256(bytes_of(canonical))));
  Sha256 key = hmac_sha256(bytes_of("AWS4" + credentials.secret_access_key), time.substr(0, 8));
  key = hmac_sha256(key, region_);
  key = hmac_sha256(key, service_);
  key = hmac_sha256(key, "aws4_request");
  return hex_bytes(hmac_sha256(key, text));
}

}  // namespace collect::upload
