#include "daemon/upload/commit_object.h"

#include "daemon/upload/digests.h"

namespace collect::upload {
namespace {

class BoundedText final : public ByteSink {
 public:
  Status write(Bytes bytes) override {
    if (bytes.size() > kMaxCommitBytes - text.size()) {
      return Error{Code::kLimit,
                   "COMMIT of more than " + std::to_string(kMaxCommitBytes) + " bytes"};
    }
    text += text_of(bytes);
    return {};
  }
  std::string text;
};

}  // namespace

Result<std::string> read_commit_text(S3Client& client, Retries& retries,
                                     const std::string& prefix) {
  std::string text;
  const auto got = retries.run([&] {
    BoundedText sink;
    auto bytes = client.get(prefix + kCommitName, sink);
    text = std::move(sink.text);
    return bytes;
  });
  if (!got.ok()) return got.error();
  return text;
}

Result<Commit> read_commit(S3Client& client, Retries& retries, const std::string& prefix) {
  const auto text = read_commit_text(client, retries, prefix);
  if (!text.ok()) return text.error();
  auto commit = commit_from_json(*text);
  if (!commit.ok()) return Error{commit.code(), prefix + commit.error().message};
  return commit;
}

}  // namespace collect::upload
