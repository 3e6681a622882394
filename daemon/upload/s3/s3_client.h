// Requests to one bucket of an S3 server, each signed, each bounded. It corrects its clock by the
// server's, and asks for new credentials when the server says that they have expired; both once for
// each request. All else that may pass is the caller's to try again (retry.h).
//
// Used on one thread; cancel() may be called from any.
//
// Codes: kUnavailable: may pass, try again; kPermission: 401 and 403; kNotFound: no such key or
// upload; kInvalidArgument: no such bucket, or a request that the server never takes;
// kAlreadyExists: 412; kDamaged: an answer that is none; kUnsupported: the server ignored what the
// request needs; kCancelled.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/upload/s3/credentials.h"
#include "daemon/upload/s3/http_connection.h"
#include "daemon/upload/s3/s3_endpoint.h"
#include "daemon/upload/s3/s3_signer.h"
#include "daemon/upload/s3/s3_xml.h"
#include "formats/core/byte_sink.h"
#include "formats/core/result.h"
#include "storage/fs/clock.h"

namespace collect::upload {

inline constexpr size_t kMaxErrorBytes = 64u << 10;  // of an error's body
inline constexpr uint64_t kMaxPutBytes = 5ull << 30;
inline constexpr uint32_t kMaxParts = 10'000;
inline constexpr uint32_t kMaxListKeys = 1000;  // of one page

struct S3Settings {
  std::string endpoint{};
  std::string bucket{};
  std::string region = "us-east-1";
  BucketStyle style = BucketStyle::kPath;
  uint64_t max_bytes_per_s = 0;  // 0: as fast as it goes
  HttpSettings http{};
};

struct ObjectInfo {
  std::string key{};
  uint64_t bytes = 0;
  std::string etag{};         // without quotes
  std::string crc32c_meta{};  // x-amz-meta-crc32c; head() alone
};

struct ByteRange {
  uint64_t first = 0;
  std::optional<uint64_t> last{};  // absent: to the end
};

struct PutOptions {
  bool only_new = false;  // If-None-Match: *
  std::string content_type = "application/octet-stream";
  uint32_t crc32c = 0;  // of the body
};

struct PartInfo {
  uint32_t number = 0;  // from 1
  uint64_t bytes = 0;
  std::string etag{};   // without quotes
  uint32_t crc32c = 0;  // as it was sent; not of a listed part
};

struct OpenUpload {
  std::string key{};
  std::string id{};
};

template <class Entry>
struct ListPage {
  std::vector<Entry> entries{};
  std::string next{};  // hand it to the next call; empty: this was the last page
};

class S3Client {
 public:
  // `credentials` and `clock` outlive it.
  static Result<std::unique_ptr<S3Client>> create(S3Settings settings,
                                                  CredentialsSource& credentials,
                                                  storage::Clock& clock);

  // The ETag. Content-MD5 and x-amz-checksum-crc32c go with it, and x-amz-meta-crc32c stays.
  Result<std::string> put(std::string_view key, Bytes body, const PutOptions& options);
  // How many bytes went to the sink.
  Result<uint64_t> get(std::string_view key, ByteSink& sink, std::optional<ByteRange> range = {});
  Result<ObjectInfo> head(std::string_view key);
  Result<ListPage<ObjectInfo>> list(std::string_view prefix, const std::string& from = {},
                                    uint32_t most = kMaxListKeys);
  Status remove(std::string_view key);  // also ok when it is not there

  Result<std::string> create_upload(std::string_view key, const std::string& content_type);
  Result<PartInfo> upload_part(std::string_view key, const std::string& upload_id, uint32_t number,
                               Bytes body, uint32_t crc32c);
  // The object's ETag. `crc32c` is that of the whole object.
  Result<std::string> complete_upload(std::string_view key, const std::string& upload_id,
                                      const std::vector<PartInfo>& parts, uint32_t crc32c);
  Status abort_upload(std::string_view key, const std::string& upload_id);
  Result<ListPage<PartInfo>> list_parts(std::string_view key, const std::string& upload_id,
                                        const std::string& from = {});
  // Not completed and not aborted.
  Result<ListPage<OpenUpload>> list_uploads(std::string_view prefix, const std::string& from = {});

  // Ends the request that is under way, and each later one. Any thread.
  void cancel() {
    http_.cancel();
    credentials_.cancel();
  }

  // Status of the last answer; 0: there was none.
  int last_status() const { return last_status_; }
  // What is added to this machine's clock.
  int64_t clock_correction_s() const { return clock_correction_s_; }
  const S3Endpoint& endpoint() const { return endpoint_; }

 private:
  struct Call {
    std::string method{};
    std::string_view key{};
    QueryFields query{};
    std::vector<HttpField> headers{};
    Bytes body{};
    size_t most_answer_bytes = kMaxErrorBytes;
    ByteSink* sink = nullptr;
    int sink_status = 200;  // of the answers whose body goes there
  };

  S3Client(S3Settings settings, S3Endpoint endpoint, CredentialsSource& credentials,
           storage::Clock& clock);
  // A 2xx answer, or why there is none.
  Result<HttpAnswer> ask(const Call& call);
  Result<HttpAnswer> ask_once(const Call& call);
  bool correct_clock(const HttpAnswer& answer);
  Error error_of(const Call& call, int status, std::string_view body) const;
  Error damaged(const Call& call, const Error& why) const;
  Result<std::string> ask_etag(const Call& call);
  // The answer as XML whose root is `root`; also an error in a 200 answer.
  Result<XmlElement> ask_xml(Call call, std::string_view root);

  const S3Settings settings_;
  const S3Endpoint endpoint_;
  const S3Signer signer_;
  CredentialsSource& credentials_;
  storage::Clock& clock_;
  HttpConnection http_;
  int last_status_ = 0;
  int64_t clock_correction_s_ = 0;
};

}  // namespace collect::upload
