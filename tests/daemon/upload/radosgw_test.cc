// Against radosgw, which shares nothing with us. Its packages are not those of the build: without
// them this skips (radosgw_server.py says which).
#include <gmock/gmock.h>

#include <filesystem>
#include <random>

#include "daemon/upload/download.h"
#include "daemon/upload/s3/digests.h"
#include "formats/core/crc32.h"
#include "tests/daemon/upload/upload_fixture.h"

namespace collect::upload::test {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr uint64_t kLeastPart = 5u << 20;  // that S3 and radosgw take, but for the last

class RadosgwTest : public UploadTest {
 protected:
  static ServerProgram& program() {
    static ServerProgram started({RADOSGW_SERVER, kBucket, "ACCESS", "secret/key+="});
    return started;
  }
  void SetUp() override {
    const std::string& line = program().line();
    if (line.find("is not here") != std::string::npos) GTEST_SKIP() << line;
    ASSERT_NE(std::atoi(line.c_str()), 0) << line;
    settings_.s3.endpoint = "http://127.0.0.1:" + line;
    settings_.s3.bucket = kBucket;
    settings_.s3.region = "default";
    settings_.sizes = {kLeastPart + 1000, kLeastPart};
    client_ = connect({"ACCESS", "secret/key+="});
  }
  std::unique_ptr<S3Client> connect(const Credentials& credentials) {
    sources_.push_back(std::make_unique<StaticCredentials>(credentials));
    auto made = S3Client::create(settings_.s3, *sources_.back(), storage::system_clock());
    EXPECT_OK(made);
    return std::move(*made);
  }
  UploadStatus send(const storage::SessionPath& session_path) {
    const auto uploader =
        Uploader::start(settings_, {fs_, storage::system_clock(), *sources_.front()});
    EXPECT_OK(uploader);
    EXPECT_OK((*uploader)->add(session_path, kPart));
    EXPECT_TRUE((*uploader)->wait_idle(60'000)) << (*uploader)->status().problem;
    return (*uploader)->status();
  }
  static std::vector<uint8_t> random_bytes(size_t bytes) {
    std::mt19937_64 random(5);
    std::vector<uint8_t> out(bytes);
    for (uint8_t& byte : out) byte = static_cast<uint8_t>(random());
    return out;
  }
  // With a container that goes in three parts.
  storage::SessionPath make_large_session(uint32_t recording) {
    const auto session_path = make_session(recording);
    storage::test::write_file(session_path.directory + "/capture-000001.rtc",
                              random_bytes(2 * kLeastPart + 77'777));
    return session_path;
  }

  std::vector<std::unique_ptr<StaticCredentials>> sources_;
  UploadSettings settings_;
  std::unique_ptr<S3Client> client_;
  Retries retries_{{}, time_, 1, [](const Error&) {}};
};

TEST_F(RadosgwTest, SessionGoesThereAndComesBack) {
  const auto session_path = make_large_session(1);
  const UploadStatus sent = send(session_path);
  EXPECT_EQ(sent.committed_sessions, 1u) << sent.problem;
  const auto parts = list_committed_parts(*client_, retries_, "v1/");
  ASSERT_OK(parts);
  ASSERT_THAT(parts->prefixes, SizeIs(1));
  const std::string prefix = parts->prefixes[0];
  storage::test::TemporaryDirectory back;
  const auto directory = download_part(*client_, retries_, prefix, fs_, back.path());
  ASSERT_OK(directory);
  size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(session_path.directory)) {
    if (!entry.is_regular_file()) continue;
    ++files;
    const std::string path = entry.path().string();
    EXPECT_EQ(storage::test::read_file(*directory + path.substr(session_path.directory.size())),
              storage::test::read_file(path));
  }
  EXPECT_EQ(files, 6u);

  EXPECT_EQ(send(session_path).present_sessions, 1u);
  // All but COMMIT is there, and known by what the server lists.
  EXPECT_OK(client_->remove(prefix + kCommitName));
  const UploadStatus again = send(session_path);
  EXPECT_EQ(again.committed_sessions, 1u) << again.problem;
  EXPECT_EQ(again.sent_bytes, 0u);
}

TEST_F(RadosgwTest, InterruptedUploadContinues) {
  const auto session_path = make_large_session(2);
  const auto manifest = storage::read_manifest(fs_, session_path.directory);
  const std::string prefix = *part_prefix(manifest->identity, kPart);
  const auto bytes = storage::test::read_file(session_path.directory + "/capture-000001.rtc");
  const std::string key = prefix + "capture-000001.rtc";
  const auto id = client_->create_upload(key, "application/octet-stream");
  ASSERT_OK(id);
  const Bytes first = Bytes(bytes).first(kLeastPart);
  ASSERT_OK(client_->upload_part(key, *id, 1, first, crc32c(first)));
  const auto lost = client_->create_upload(key, "application/octet-stream");
  ASSERT_OK(lost);
  const UploadStatus status = send(session_path);
  EXPECT_EQ(status.committed_sessions, 1u) << status.problem;
  EXPECT_LT(status.sent_bytes, bytes.size());
  const auto open = client_->list_uploads(prefix);
  ASSERT_OK(open);
  EXPECT_THAT(open->entries, SizeIs(0));
}

TEST_F(RadosgwTest, ProvidesTheRequestsTheUploaderNeeds) {
  PutOptions once;
  once.only_new = true;
  once.crc32c = crc32c(bytes_of("x"));
  const std::string key = "other/device=D/a b+c~\xc3\xa9";
  EXPECT_OK(client_->put(key, bytes_of("x"), once));
  EXPECT_EQ(client_->put(key, bytes_of("y"), once).code(), Code::kAlreadyExists);
  const auto head = client_->head(key);
  ASSERT_OK(head);
  EXPECT_EQ(head->bytes, 1u);
  VectorSink sink;
  EXPECT_OK(client_->get(key, sink, ByteRange{0, 0}));
  EXPECT_EQ(text_of(sink.bytes()), "x");
  const auto page = client_->list("other/");
  ASSERT_OK(page);
  ASSERT_THAT(page->entries, SizeIs(1));
  EXPECT_EQ(page->entries[0].key, key);
  EXPECT_OK(client_->remove(key));
  EXPECT_EQ(client_->head(key).code(), Code::kNotFound);

  const auto refused = connect({"ACCESS", "another"})->put(key, bytes_of("x"), once);
  EXPECT_EQ(refused.code(), Code::kPermission);
  EXPECT_THAT(refused.error().message, HasSubstr("SignatureDoesNotMatch"));
  settings_.s3.bucket = "another";
  EXPECT_EQ(connect({"ACCESS", "secret/key+="})->put(key, bytes_of("x"), once).code(),
            Code::kInvalidArgument);
}

TEST_F(RadosgwTest, RefusesTooSmallPartsAtTheEnd) {
  const auto id = client_->create_upload("k", "x");
  ASSERT_OK(id);
  std::vector<PartInfo> parts;
  for (const uint32_t number : {1u, 2u}) {
    const auto part = client_->upload_part("k", *id, number, bytes_of("a"), crc32c(bytes_of("a")));
    ASSERT_OK(part);
    parts.push_back(*part);
  }
  const auto done = client_->complete_upload("k", *id, parts, crc32c(bytes_of("aa")));
  EXPECT_EQ(done.code(), Code::kInvalidArgument);
  EXPECT_THAT(done.error().message, HasSubstr("EntityTooSmall"));
  EXPECT_OK(client_->abort_upload("k", *id));
}

}  // namespace
}  // namespace collect::upload::test
