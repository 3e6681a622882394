#include "daemon/upload/commit_object.h"

#include <fmt/core.h>

#include "daemon/upload/s3/digests.h"

namespace collect::upload {
namespace {

class BoundedText final : public ByteSink {
 public:
  BoundedText(const std::string& key, size_t most_bytes) : key_(key), most_bytes_(most_bytes) {}
  Status write(Bytes bytes) override {
    if (bytes.size() > most_bytes_ - text.size()) {
      return Error{Code::kLimit, fmt::format("{}: more than {} bytes", key_, most_bytes_)};
    }
    text += text_of(bytes);
    return {};
  }
  std::string text;

 private:
  const std::string& key_;
  const size_t most_bytes_;
};

}  // namespace

Result<std::string> read_object_text(S3Client& client, Retries& retries, const std::string& key,
                                     size_t most_bytes) {
  std::string text;
  const auto got = retries.run([&] {
    BoundedText sink(key, most_bytes);
    auto bytes = client.get(key, sink);
    text = std::move(sink.text);
    return bytes;
  });
  if (!got.ok()) return got.error();
  return text;
}

Result<std::string> read_commit_text(S3Client& client, Retries& retries,
                                     const std::string& prefix) {
  return read_object_text(client, retries, prefix + kCommitName, kMaxCommitBytes);
}

Result<Commit> read_commit(S3Client& client, Retries& retries, const std::string& prefix) {
  const auto text = read_commit_text(client, retries, prefix);
  if (!text.ok()) return text.error();
  auto commit = commit_from_json(*text);
  if (!commit.ok()) return Error{commit.code(), prefix + commit.error().message};
  if (!is_prefix_of(prefix, commit->process_id, commit->recording, commit->part)) {
    return Error{Code::kDamaged, fmt::format("{}{} is of another part: {}-{} of {}-{}", prefix,
                                             kCommitName, commit->process_id, commit->recording,
                                             commit->part.collector, commit->part.epoch)};
  }
  return commit;
}

bool is_of_one_part(const Error& error) {
  switch (error.code) {
    case Code::kDamaged:
    case Code::kTruncated:
    case Code::kLimit:
    case Code::kNotFound:
    case Code::kPermission:
    case Code::kUnsupported:
    case Code::kInvalidArgument:  // a request for this key that the server never takes
      return true;
    default:
      return false;
  }
}

}  // namespace collect::upload
