#include "daemon/upload/s3/s3_client.h"

#include <curl/curl.h>
#include <fmt/core.h>

#include "daemon/upload/s3/digests.h"
#include "daemon/upload/s3/s3_failure.h"
#include "daemon/upload/s3/uri.h"
#include "formats/core/text/hex.h"

namespace collect::upload {
namespace {

constexpr uint64_t kNsPerSecond = 1'000'000'000;
constexpr char kCrcMetaField[] = "x-amz-meta-crc32c";

std::string without_quotes(std::string_view etag) {
  if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"') {
    etag = etag.substr(1, etag.size() - 2);
  }
  return std::string(etag);
}

std::string field_of(const HttpAnswer& answer, std::string_view name) {
  const std::string* value = answer.header(name);
  return value == nullptr ? std::string() : *value;
}

std::string hex_of(uint32_t crc) {
  const uint8_t bytes[4] = {static_cast<uint8_t>(crc >> 24), static_cast<uint8_t>(crc >> 16),
                            static_cast<uint8_t>(crc >> 8), static_cast<uint8_t>(crc)};
  return hex_bytes(bytes);
}

std::vector<HttpField> checksum_fields(Bytes body, uint32_t crc) {
  return {{"content-md5", base64(md5(body))}, {"x-amz-checksum-crc32c", base64_crc32c(crc)}};
}

// A key of a list that was asked for with encoding-type=url.
Result<std::string> listed_key(const XmlElement& page, const XmlElement& entry) {
  const std::string key = entry.child_text("Key");
  if (page.child_text("EncodingType") != "url") return key;
  std::optional<std::string> decoded = decode_uri(key);
  if (!decoded) return Error{Code::kDamaged, "a key that is not encoded as announced"};
  return std::move(*decoded);
}

Status check_key(std::string_view key) {
  if (!key.empty() && key.size() <= kMaxKeyBytes) return {};
  return Error{Code::kInvalidArgument,
               fmt::format("a key of {} bytes; 1 to {} are possible", key.size(), kMaxKeyBytes)};
}

// Ends an answer that is longer than the range that was asked for.
class RangeSink final : public ByteSink {
 public:
  RangeSink(ByteSink& out, std::optional<uint64_t> most) : out_(out), left_(most) {}
  Status write(Bytes bytes) override {
    if (left_ && bytes.size() > *left_) {
      return Error{Code::kUnsupported, "more came than the range that was asked for"};
    }
    if (left_) *left_ -= bytes.size();
    return out_.write(bytes);
  }

 private:
  ByteSink& out_;
  std::optional<uint64_t> left_;
};

}  // namespace

Result<std::unique_ptr<S3Client>> S3Client::create(S3Settings settings,
                                                   CredentialsSource& credentials,
                                                   storage::Clock& clock) {
  Result<S3Endpoint> endpoint =
      S3Endpoint::parse(settings.endpoint, settings.bucket, settings.style);
  if (!endpoint.ok()) return endpoint.error();
  return std::unique_ptr<S3Client>(
      new S3Client(std::move(settings), std::move(*endpoint), credentials, clock));
}

S3Client::S3Client(S3Settings settings, S3Endpoint endpoint, CredentialsSource& credentials,
                   storage::Clock& clock)
    : settings_(std::move(settings)),
      endpoint_(std::move(endpoint)),
      signer_(settings_.region),
      credentials_(credentials),
      clock_(clock),
      http_(settings_.http) {}

Result<HttpAnswer> S3Client::ask_once(const Call& call) {
  const Result<Credentials> credentials = credentials_.get();
  if (!credentials.ok()) return credentials.error();
  HttpRequest request;
  request.method = call.method;
  request.url = endpoint_.url_of(call.key, call.query);
  request.headers = call.headers;
  request.body = call.body;
  request.most_answer_bytes = call.most_answer_bytes;
  request.most_send_bytes_per_s = settings_.max_bytes_per_s;
  request.sink_status = call.sink_status;
  const std::string hash =
      endpoint_.is_tls() ? std::string(kUnsignedPayload) : hex_bytes(sha256(call.body));
  const std::string path = endpoint_.path_of(call.key);
  const std::string query = canonical_query(call.query);
  const auto now = static_cast<int64_t>(clock_.unix_ns() / kNsPerSecond) + clock_correction_s_;
  signer_.sign({call.method, endpoint_.host(), path, query, hash}, *credentials,
               static_cast<uint64_t>(std::max<int64_t>(0, now)), request.headers);
  last_status_ = 0;
  Result<HttpAnswer> answer = http_.perform(request, call.sink);
  if (answer.ok()) last_status_ = answer->status;
  return answer;
}

Result<HttpAnswer> S3Client::ask(const Call& call) {
  bool corrected = false;
  bool renewed = false;
  for (;;) {
    Result<HttpAnswer> answer = ask_once(call);
    if (!answer.ok()) return answer;
    if (answer->status >= 200 && answer->status < 300) return answer;
    const std::string s3_code = read_failure(answer->body).code;
    if (is_clock_failure(s3_code) && !corrected && correct_clock(*answer)) {
      corrected = true;
      continue;
    }
    if (is_expiry(s3_code)) {
      credentials_.invalidate();
      if (!renewed) {
        renewed = true;
        continue;
      }
    }
    return error_of(call, answer->status, answer->body);
  }
}

bool S3Client::correct_clock(const HttpAnswer& answer) {
  const std::string* date = answer.header("date");
  if (date == nullptr) return false;
  const time_t theirs = curl_getdate(date->c_str(), nullptr);
  if (theirs < 0) return false;
  clock_correction_s_ =
      static_cast<int64_t>(theirs) - static_cast<int64_t>(clock_.unix_ns() / kNsPerSecond);
  return true;
}

Error S3Client::error_of(const Call& call, int status, std::string_view body) const {
  const S3Failure failure = read_failure(body);
  std::string text = fmt::format("{} {}/{}: {}", call.method, endpoint_.name(), call.key, status);
  if (!failure.code.empty()) text += " " + failure.code;
  if (!failure.message.empty()) text += ": " + failure.message;
  return {code_of(status, failure.code), std::move(text)};
}

Error S3Client::damaged(const Call& call, const Error& why) const {
  return {why.code,
          fmt::format("{} {}/{}: {}", call.method, endpoint_.name(), call.key, why.message)};
}

Result<XmlElement> S3Client::ask_xml(Call call, std::string_view root) {
  call.most_answer_bytes = kMaxXmlBytes;
  const Result<HttpAnswer> answer = ask(call);
  if (!answer.ok()) return answer.error();
  Result<XmlElement> xml = read_xml(answer->body);
  if (!xml.ok()) return damaged(call, xml.error());
  if (xml->name == "Error") return error_of(call, answer->status, answer->body);
  if (xml->name != root) {
    return damaged(call, {Code::kDamaged,
                          fmt::format("<{}> where <{}> is due", xml->name.substr(0, 100), root)});
  }
  return xml;
}

// What was stored has an ETag. A 200 answer without one is not S3's, or is an error in disguise.
Result<std::string> S3Client::ask_etag(const Call& call) {
  const Result<HttpAnswer> answer = ask(call);
  if (!answer.ok()) return answer.error();
  std::string etag = without_quotes(field_of(*answer, "etag"));
  if (!etag.empty()) return etag;
  if (!read_failure(answer->body).code.empty()) {
    return error_of(call, answer->status, answer->body);
  }
  return damaged(call, {Code::kDamaged, "no ETag in the answer"});
}

Result<std::string> S3Client::put(std::string_view key, Bytes body, const PutOptions& options) {
  COLLECT_TRY(check_key(key));
  if (body.size() > kMaxPutBytes) {
    return Error{Code::kLimit, fmt::format("an object of {} bytes: more than {} need parts",
                                           body.size(), kMaxPutBytes)};
  }
  Call call{"PUT", key, {}, checksum_fields(body, options.crc32c), body};
  call.headers.push_back({"content-type", options.content_type});
  call.headers.push_back({kCrcMetaField, hex_of(options.crc32c)});
  if (options.only_new) call.headers.push_back({"if-none-match", "*"});
  return ask_etag(call);
}

Result<uint64_t> S3Client::get(std::string_view key, ByteSink& sink,
                               std::optional<ByteRange> range) {
  COLLECT_TRY(check_key(key));
  Call call{"GET", key};
  if (!range) {
    call.sink = &sink;
    const Result<HttpAnswer> answer = ask(call);
    if (!answer.ok()) return answer.error();
    return answer->body_bytes;
  }
  call.headers.push_back({"range", fmt::format("bytes={}-{}", range->first,
                                               range->last ? std::to_string(*range->last) : "")});
  std::optional<uint64_t> most;
  if (range->last) most = *range->last - range->first + 1;
  RangeSink bounded(sink, most);
  call.sink = &bounded;
  call.sink_status = 206;
  const Result<HttpAnswer> answer = ask(call);
  if (!answer.ok()) return answer.error();
  const std::string place = fmt::format("bytes {}-", range->first);
  if (answer->status != 206 || !field_of(*answer, "content-range").starts_with(place)) {
    return damaged(call, {Code::kUnsupported, "the server ignores the range that was asked for"});
  }
  return answer->body_bytes;
}

Result<ObjectInfo> S3Client::head(std::string_view key) {
  COLLECT_TRY(check_key(key));
  const Result<HttpAnswer> answer = ask({"HEAD", key});
  if (!answer.ok()) return answer.error();
  ObjectInfo info;
  info.key = std::string(key);
  info.etag = without_quotes(field_of(*answer, "etag"));
  info.crc32c_meta = field_of(*answer, kCrcMetaField);
  const std::string size = field_of(*answer, "content-length");
  if (size.empty() || size.size() > 18 ||
      size.find_first_not_of("0123456789") != std::string::npos) {
    return Error{Code::kDamaged, fmt::format("HEAD {}: no content-length", info.key)};
  }
  info.bytes = std::stoull(size);
  return info;
}

Status S3Client::remove(std::string_view key) {
  COLLECT_TRY(check_key(key));
  const Result<HttpAnswer> answer = ask({"DELETE", key});
  return answer.ok() || answer.code() == Code::kNotFound ? Status() : Status(answer.error());
}

Result<ListPage<ObjectInfo>> S3Client::list(std::string_view prefix, const std::string& from,
                                            uint32_t most) {
  Call call{"GET", ""};
  call.query = {{"list-type", "2"},
                {"prefix", std::string(prefix)},
                {"encoding-type", "url"},
                {"max-keys", std::to_string(most)}};
  if (!from.empty()) call.query.emplace_back("continuation-token", from);
  const Result<XmlElement> xml = ask_xml(call, "ListBucketResult");
  if (!xml.ok()) return xml.error();
  ListPage<ObjectInfo> page;
  for (const XmlElement& entry : xml->children) {
    if (entry.name != "Contents") continue;
    const Result<std::string> key = listed_key(*xml, entry);
    if (!key.ok()) return damaged(call, key.error());
    const Result<uint64_t> bytes = entry.child_number("Size");
    if (!bytes.ok()) return damaged(call, bytes.error());
    if (key->size() > kMaxKeyBytes) {
      return damaged(call, {Code::kDamaged, fmt::format("a key of {} bytes", key->size())});
    }
    if (!key->starts_with(prefix)) {
      return damaged(call, {Code::kUnsupported, "the server ignores the prefix of a list"});
    }
    page.entries.push_back({*key, *bytes, without_quotes(entry.child_text("ETag"))});
  }
  if (xml->child_text("IsTruncated") == "true") {
    page.next = xml->child_text("NextContinuationToken");
    if (page.next.empty()) {
      return damaged(call, {Code::kDamaged, "truncated list without a continuation token"});
    }
  }
  return page;
}

Result<std::string> S3Client::create_upload(std::string_view key, const std::string& content_type) {
  COLLECT_TRY(check_key(key));
  Call call{"POST", key, {{"uploads", ""}}};
  call.headers = {{"content-type", content_type},
                  {"x-amz-checksum-algorithm", "CRC32C"},
                  {"x-amz-checksum-type", "FULL_OBJECT"}};
  const Result<XmlElement> xml = ask_xml(call, "InitiateMultipartUploadResult");
  if (!xml.ok()) return xml.error();
  std::string id = xml->child_text("UploadId");
  if (id.empty()) return damaged(call, {Code::kDamaged, "no <UploadId>"});
  return id;
}

Result<PartInfo> S3Client::upload_part(std::string_view key, const std::string& upload_id,
                                       uint32_t number, Bytes body, uint32_t crc32c) {
  COLLECT_CHECK(number >= 1 && number <= kMaxParts && body.size() <= kMaxPutBytes);
  Call call{"PUT", key, {{"partNumber", std::to_string(number)}, {"uploadId", upload_id}}};
  call.headers = checksum_fields(body, crc32c);
  call.body = body;
  auto etag = ask_etag(call);
  if (!etag.ok()) return etag.error();
  return PartInfo{number, body.size(), std::move(*etag), crc32c};
}

Result<std::string> S3Client::complete_upload(std::string_view key, const std::string& upload_id,
                                              const std::vector<PartInfo>& parts, uint32_t crc32c) {
  std::string body = "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
  for (const PartInfo& part : parts) {
    body += fmt::format(
        "<Part><PartNumber>{}</PartNumber><ETag>&quot;{}&quot;</ETag><ChecksumCRC32C>{}</"
        "ChecksumCRC32C></Part>",
        part.number, escape_xml(part.etag), base64_crc32c(part.crc32c));
  }
  body += "</CompleteMultipartUpload>";
  Call call{"POST", key, {{"uploadId", upload_id}}};
  call.headers = {{"content-type", "application/xml"},
                  {"x-amz-checksum-crc32c", base64_crc32c(crc32c)},
                  {"x-amz-checksum-type", "FULL_OBJECT"}};
  call.body = bytes_of(body);
  const Result<XmlElement> xml = ask_xml(call, "CompleteMultipartUploadResult");
  if (!xml.ok()) return xml.error();
  return without_quotes(xml->child_text("ETag"));
}

Status S3Client::abort_upload(std::string_view key, const std::string& upload_id) {
  const Result<HttpAnswer> answer = ask({"DELETE", key, {{"uploadId", upload_id}}});
  return answer.ok() || answer.code() == Code::kNotFound ? Status() : Status(answer.error());
}

Result<ListPage<PartInfo>> S3Client::list_parts(std::string_view key, const std::string& upload_id,
                                                const std::string& from) {
  Call call{"GET", key, {{"uploadId", upload_id}, {"max-parts", "1000"}}};
  if (!from.empty()) call.query.emplace_back("part-number-marker", from);
  const Result<XmlElement> xml = ask_xml(call, "ListPartsResult");
  if (!xml.ok()) return xml.error();
  ListPage<PartInfo> page;
  for (const XmlElement& entry : xml->children) {
    if (entry.name != "Part") continue;
    const Result<uint64_t> number = entry.child_number("PartNumber");
    const Result<uint64_t> bytes = entry.child_number("Size");
    if (!number.ok()) return damaged(call, number.error());
    if (!bytes.ok()) return damaged(call, bytes.error());
    if (*number < 1 || *number > kMaxParts) {
      return damaged(call, {Code::kDamaged, fmt::format("part {} cannot be", *number)});
    }
    page.entries.push_back(
        {static_cast<uint32_t>(*number), *bytes, without_quotes(entry.child_text("ETag"))});
  }
  if (xml->child_text("IsTruncated") == "true") {
    page.next = xml->child_text("NextPartNumberMarker");
    if (page.next.empty()) {
      return damaged(call, {Code::kDamaged, "truncated list without a continuation token"});
    }
  }
  return page;
}

Result<ListPage<OpenUpload>> S3Client::list_uploads(std::string_view prefix,
                                                    const std::string& from) {
  // The end of a page is two values, which travel as one here.
  const size_t split = from.find('\n');
  Call call{"GET", ""};
  call.query = {{"uploads", ""}, {"prefix", std::string(prefix)}, {"max-uploads", "1000"}};
  if (split != std::string::npos) {
    call.query.emplace_back("key-marker", from.substr(0, split));
    call.query.emplace_back("upload-id-marker", from.substr(split + 1));
  }
  const Result<XmlElement> xml = ask_xml(call, "ListMultipartUploadsResult");
  if (!xml.ok()) return xml.error();
  ListPage<OpenUpload> page;
  for (const XmlElement& entry : xml->children) {
    if (entry.name != "Upload") continue;
    OpenUpload open{entry.child_text("Key"), entry.child_text("UploadId")};
    if (open.key.starts_with(prefix) && !open.id.empty()) page.entries.push_back(std::move(open));
  }
  if (xml->child_text("IsTruncated") == "true") {
    page.next = fmt::format("{}\n{}", xml->child_text("NextKeyMarker"),
                            xml->child_text("NextUploadIdMarker"));
    if (page.next == "\n") {
      return damaged(call, {Code::kDamaged, "truncated list without a continuation token"});
    }
  }
  return page;
}

}  // namespace collect::upload
