#include "daemon/upload/s3/s3_client.h"

#include <gmock/gmock.h>

#include <thread>

#include "daemon/upload/s3/digests.h"
#include "formats/core/crc32.h"
#include "tests/daemon/upload/fake_s3.h"
#include "tests/fakes/certificates.h"
#include "tests/storage/session_fixture.h"

namespace collect::upload::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr char kKey[] = "v1/ab/device=D/a+b:c d/~é";

class S3ClientTest : public ::testing::Test {
 protected:
  static FakeS3& server() {
    static FakeS3 fake;
    return fake;
  }
  void SetUp() override { server().clear(); }
  std::unique_ptr<S3Client> connect(S3Settings settings) {
    auto client = S3Client::create(std::move(settings), source_, storage::system_clock());
    EXPECT_OK(client);
    return std::move(*client);
  }
  static Result<std::string> put(S3Client& client, const std::string& key, const std::string& body,
                                 bool only_new = false) {
    PutOptions options;
    options.only_new = only_new;
    options.crc32c = crc32c(bytes_of(body));
    return client.put(key, bytes_of(body), options);
  }
  static std::string got(S3Client& client, const std::string& key,
                         std::optional<ByteRange> range = {}) {
    VectorSink sink;
    const auto bytes = client.get(key, sink, range);
    EXPECT_OK(bytes);
    return std::string(text_of(sink.bytes()));
  }

  StaticCredentials source_{FakeS3::credentials()};
  std::unique_ptr<S3Client> client_ = connect(server().settings());
};

TEST_F(S3ClientTest, PutsReadsListsAndRemoves) {
  const auto etag = put(*client_, kKey, "abc");
  ASSERT_OK(etag);
  EXPECT_EQ(*etag, "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(got(*client_, kKey), "abc");
  EXPECT_EQ(got(*client_, kKey, ByteRange{1, 1}), "b");
  EXPECT_EQ(got(*client_, kKey, ByteRange{1, {}}), "bc");
  const auto head = client_->head(kKey);
  ASSERT_OK(head);
  EXPECT_EQ(head->bytes, 3u);
  EXPECT_EQ(head->etag, *etag);
  EXPECT_EQ(head->crc32c_meta, "364b3fb7");  // RFC 3720's polynomial: crc32c("abc")
  const auto page = client_->list("v1/ab/");
  ASSERT_OK(page);
  ASSERT_EQ(page->entries.size(), 1u);
  EXPECT_EQ(page->entries[0].key, kKey);
  EXPECT_EQ(page->entries[0].bytes, 3u);
  EXPECT_EQ(page->entries[0].etag, *etag);
  EXPECT_OK(client_->remove(kKey));
  EXPECT_OK(client_->remove(kKey));
  EXPECT_EQ(client_->head(kKey).code(), Code::kNotFound);
  VectorSink sink;
  EXPECT_EQ(client_->get(kKey, sink).code(), Code::kNotFound);
  EXPECT_TRUE(sink.bytes().empty());
}

TEST_F(S3ClientTest, ConditionalPutIsRefusedWhereTheObjectIs) {
  EXPECT_OK(put(*client_, "COMMIT", "1", true));
  EXPECT_EQ(put(*client_, "COMMIT", "2", true).code(), Code::kAlreadyExists);
  EXPECT_EQ(got(*client_, "COMMIT"), "1");
}

TEST_F(S3ClientTest, ListsArePaged) {
  for (int i = 0; i < 7; ++i) EXPECT_OK(put(*client_, "p/" + std::to_string(i) + " x", ""));
  server().set({{"most_keys", 3}});
  std::vector<std::string> keys;
  std::string from;
  do {
    const auto page = client_->list("p/", from);
    ASSERT_OK(page);
    for (const ObjectInfo& info : page->entries) keys.push_back(info.key);
    from = page->next;
  } while (!from.empty());
  EXPECT_THAT(
      keys, ::testing::ElementsAre("p/0 x", "p/1 x", "p/2 x", "p/3 x", "p/4 x", "p/5 x", "p/6 x"));
  server().set({{"ignore", {"prefix"}}});
  EXPECT_EQ(client_->list("q/").code(), Code::kUnsupported);
}

TEST_F(S3ClientTest, Multipart) {
  server().set({{"min_part", 4}, {"most_keys", 1}});
  const auto id = client_->create_upload(kKey, "application/zstd");
  ASSERT_OK(id);
  std::vector<PartInfo> parts;
  for (const std::string body : {"aaaa", "bbbb", "c"}) {
    const auto part = client_->upload_part(kKey, *id, static_cast<uint32_t>(parts.size() + 1),
                                           bytes_of(body), crc32c(bytes_of(body)));
    ASSERT_OK(part);
    parts.push_back(*part);
  }
  const auto first = client_->list_parts(kKey, *id);
  ASSERT_OK(first);
  EXPECT_EQ(first->entries[0].etag, parts[0].etag);
  const auto second = client_->list_parts(kKey, *id, first->next);
  ASSERT_OK(second);
  EXPECT_EQ(second->entries[0].number, 2u);
  const auto other = client_->create_upload("v1/z", "x");
  ASSERT_OK(other);
  const auto open = client_->list_uploads("v1/");
  ASSERT_OK(open);
  ASSERT_EQ(open->entries.size(), 1u);
  EXPECT_EQ(open->entries[0].key, kKey);
  EXPECT_EQ(open->entries[0].id, *id);
  const auto rest = client_->list_uploads("v1/", open->next);
  ASSERT_OK(rest);
  EXPECT_EQ(rest->entries[0].id, *other);
  EXPECT_OK(client_->abort_upload("v1/z", *other));
  EXPECT_OK(client_->abort_upload("v1/z", *other));  // it is gone already

  EXPECT_OK(client_->complete_upload(kKey, *id, parts, crc32c(bytes_of("aaaabbbbc"))));
  EXPECT_EQ(got(*client_, kKey), "aaaabbbbc");
  EXPECT_EQ(client_->complete_upload(kKey, *id, parts, 0).code(), Code::kNotFound);
}

TEST_F(S3ClientTest, PartsThatAreTooSmallFailAtTheEnd) {
  const auto id = client_->create_upload("k", "x");
  ASSERT_OK(id);
  std::vector<PartInfo> parts;
  for (uint32_t n : {1u, 2u})
    parts.push_back(*client_->upload_part("k", *id, n, bytes_of("a"), crc32c(bytes_of("a"))));
  const auto done = client_->complete_upload("k", *id, parts, crc32c(bytes_of("aa")));
  EXPECT_EQ(done.code(), Code::kInvalidArgument);
  EXPECT_THAT(done.error().message, HasSubstr("EntityTooSmall"));
}

TEST_F(S3ClientTest, ErrorInA200AnswerIsOne) {
  const auto id = client_->create_upload("k", "x");
  ASSERT_OK(id);
  const auto part = client_->upload_part("k", *id, 1, bytes_of("a"), crc32c(bytes_of("a")));
  ASSERT_OK(part);
  server().set(
      {{"faults", {{{"at", 0}, {"kind", "error_200"}}, {{"at", 1}, {"kind", "garbage"}}}}});
  const auto done = client_->complete_upload("k", *id, {*part}, part->crc32c);
  EXPECT_EQ(done.code(), Code::kUnavailable);
  EXPECT_THAT(done.error().message, HasSubstr("InternalError"));
  EXPECT_EQ(client_->complete_upload("k", *id, {*part}, part->crc32c).code(), Code::kDamaged);
  EXPECT_OK(client_->complete_upload("k", *id, {*part}, part->crc32c));
}

TEST_F(S3ClientTest, MapsEachStatusToACode) {
  struct Case {
    int status;
    const char* code;
    Code expected;
  };
  const Case cases[] = {
      {503, "SlowDown", Code::kUnavailable},
      {500, "InternalError", Code::kUnavailable},
      {502, "", Code::kUnavailable},
      {504, "", Code::kUnavailable},
      {408, "RequestTimeout", Code::kUnavailable},
      {400, "RequestTimeout", Code::kUnavailable},
      {429, "", Code::kUnavailable},
      {409, "ConditionalRequestConflict", Code::kUnavailable},
      {400, "BadDigest", Code::kUnavailable},
      {401, "", Code::kPermission},
      {403, "AccessDenied", Code::kPermission},
      {403, "SignatureDoesNotMatch", Code::kPermission},
      {404, "NoSuchBucket", Code::kInvalidArgument},
      {404, "NoSuchKey", Code::kNotFound},
      {400, "InvalidRequest", Code::kInvalidArgument},
      {412, "PreconditionFailed", Code::kAlreadyExists},
      {301, "PermanentRedirect", Code::kInvalidArgument},
      {501, "NotImplemented", Code::kUnsupported},
  };
  for (const Case& wanted : cases) {
    server().set(
        {{"faults",
          {{{"at", 0}, {"kind", "status"}, {"status", wanted.status}, {"code", wanted.code}}}}});
    const auto answer = put(*client_, "k", "x");
    ASSERT_FALSE(answer.ok()) << wanted.code;
    EXPECT_EQ(answer.code(), wanted.expected) << wanted.status << wanted.code;
    EXPECT_EQ(client_->last_status(), wanted.status);
    EXPECT_THAT(answer.error().message,
                HasSubstr("PUT s3://traces/k: " + std::to_string(wanted.status)));
  }
}

TEST_F(S3ClientTest, BrokenConnectionsAreUnavailable) {
  const std::string body(1 << 20, 'x');
  server().set({{"faults",
                 {{{"at", 0}, {"kind", "reset"}},
                  {{"at", 1}, {"kind", "lost_answer"}},
                  {{"at", 2}, {"kind", "slow"}},
                  {{"at", 3}, {"kind", "cut"}}}}});
  EXPECT_EQ(put(*client_, "k", body).code(), Code::kUnavailable);
  EXPECT_EQ(client_->last_status(), 0);
  EXPECT_TRUE(server().objects().empty());
  EXPECT_EQ(put(*client_, "k", body).code(), Code::kUnavailable);
  EXPECT_EQ(server().objects().size(), 1u);
  EXPECT_OK(put(*client_, "k", body));
  VectorSink sink;
  EXPECT_EQ(client_->get("k", sink).code(), Code::kUnavailable);
  EXPECT_LT(sink.bytes().size(), body.size());
  S3Settings absent = server().settings();
  absent.endpoint = "http://127.0.0.1:1";
  EXPECT_EQ(put(*connect(absent), "k", "x").code(), Code::kUnavailable);
}

TEST_F(S3ClientTest, StalledRequestEnds) {
  S3Settings settings = server().settings();
  settings.http.stall_ms = 1000;
  const auto client = connect(settings);
  server().set({{"faults", {{{"at", 0}, {"kind", "hang"}}}}});
  EXPECT_EQ(put(*client, "k", "x").code(), Code::kUnavailable);
}

TEST_F(S3ClientTest, AnotherThreadCancels) {
  server().set({{"faults", {{{"at", 0}, {"kind", "hang"}}}}});
  std::thread other([&] {
    while (server().log().empty()) std::this_thread::yield();
    client_->cancel();
  });
  EXPECT_EQ(put(*client_, "k", "x").code(), Code::kCancelled);
  other.join();
  EXPECT_EQ(client_->head("k").code(), Code::kCancelled);
}

TEST_F(S3ClientTest, SkewedClockIsCorrectedOnce) {
  server().set({{"clock_offset_s", -100'000}});
  EXPECT_OK(put(*client_, "k", "x"));
  EXPECT_NEAR(static_cast<double>(client_->clock_correction_s()), -100'000, 60);
  EXPECT_OK(client_->head("k"));
  const auto log = server().log();
  ASSERT_EQ(log.size(), 3u);
  EXPECT_EQ(log[0].status, 403);
  EXPECT_EQ(log[1].status, 200);
  EXPECT_EQ(log[2].status, 200);
}

TEST_F(S3ClientTest, WrongSecretIsRefused) {
  StaticCredentials wrong({"FAKEACCESSKEY", "another"});
  const auto client = S3Client::create(server().settings(), wrong, storage::system_clock());
  const auto answer = put(**client, "k", "x");
  EXPECT_EQ(answer.code(), Code::kPermission);
  EXPECT_THAT(answer.error().message, HasSubstr("SignatureDoesNotMatch"));
}

TEST_F(S3ClientTest, RenewsExpiredCredentials) {
  class Renewed final : public CredentialsSource {
   public:
    Result<Credentials> get() override { return Credentials{"K", "S", is_new ? "new" : "old"}; }
    void invalidate() override { is_new = true; }
    bool is_new = false;
  };
  Renewed source;
  server().set({{"accounts", {{"K", {"S", "new"}}}}});
  const auto client = S3Client::create(server().settings(), source, storage::system_clock());
  EXPECT_OK(put(**client, "k", "x"));
  server().set({{"accounts", {{"K", {"S", "expired"}}}}});
  EXPECT_EQ(put(**client, "k", "x").code(), Code::kUnavailable);
  EXPECT_EQ(server().log().size(), 2u);
}

TEST_F(S3ClientTest, DamageOnTheWayIsNoticedByTheServer) {
  PutOptions wrong;
  wrong.crc32c = 1;
  const auto answer = client_->put("k", bytes_of("x"), wrong);
  EXPECT_EQ(answer.code(), Code::kUnavailable);
  EXPECT_THAT(answer.error().message, HasSubstr("BadDigest"));
  server().set({{"ignore", {"x-amz-checksum-crc32c"}}});
  EXPECT_OK(client_->put("k", bytes_of("x"), wrong));
}

TEST_F(S3ClientTest, ServerThatIgnoresRangesIsNamed) {
  EXPECT_OK(put(*client_, "k", "abc"));
  server().set({{"ignore", {"range"}}});
  VectorSink sink;
  EXPECT_EQ(client_->get("k", sink, ByteRange{1, {}}).code(), Code::kUnsupported);
  EXPECT_TRUE(sink.bytes().empty());
}

TEST_F(S3ClientTest, SinkEndsTheAnswer) {
  class Full final : public ByteSink {
   public:
    Status write(Bytes) override { return Error{Code::kNoSpace, "the disk is full"}; }
  };
  EXPECT_OK(put(*client_, "k", "abc"));
  Full sink;
  EXPECT_EQ(client_->get("k", sink).code(), Code::kNoSpace);
}

TEST_F(S3ClientTest, OverTlsTheBodyIsNotSigned) {
  storage::test::TemporaryDirectory folder;
  const fakes::Authority authority(folder.path(), "authority");
  const fakes::CertifiedKey own = authority.issue("server");
  FakeS3 secure(own.certificate, own.key);
  S3Settings settings = secure.settings();
  settings.endpoint = "https://127.0.0.1:" + std::to_string(secure.port());
  EXPECT_EQ(put(*connect(settings), "k", "x").code(), Code::kUnavailable);  // an unknown authority
  settings.http.ca_file = authority.certificate();
  const auto client = connect(settings);
  EXPECT_OK(put(*client, "k", "x"));
  EXPECT_EQ(got(*client, "k"), "x");
}

TEST_F(S3ClientTest, KeysHaveALimit) {
  EXPECT_EQ(put(*client_, "", "x").code(), Code::kInvalidArgument);
  EXPECT_OK(put(*client_, std::string(kMaxKeyBytes, 'k'), "x"));
  EXPECT_EQ(put(*client_, std::string(kMaxKeyBytes + 1, 'k'), "x").code(), Code::kInvalidArgument);
}

TEST(S3EndpointTest, BothStyles) {
  const auto path = S3Endpoint::parse("http://127.0.0.1:9000/", "traces", BucketStyle::kPath);
  ASSERT_OK(path);
  EXPECT_EQ(path->host(), "127.0.0.1:9000");
  EXPECT_EQ(path->url_of("a=b", {{"x", ""}}), "http://127.0.0.1:9000/traces/a%3Db?x=");
  const auto host = S3Endpoint::parse("https://s3.eu-west-1.amazonaws.com:443", "traces",
                                      BucketStyle::kVirtualHost);
  ASSERT_OK(host);
  EXPECT_EQ(host->host(), "traces.s3.eu-west-1.amazonaws.com");
  EXPECT_EQ(host->url_of("k", {}), "https://traces.s3.eu-west-1.amazonaws.com/k");
  for (const char* wrong :
       {"", "s3.example", "ftp://x", "http://", "http://u@h", "http://h/p", "http://h?q"}) {
    EXPECT_EQ(S3Endpoint::parse(wrong, "traces", BucketStyle::kPath).code(), Code::kInvalidArgument)
        << wrong;
  }
  for (const char* wrong : {"", "ab", "UPPER", "a/b", "..", "a..b", "-ab"}) {
    EXPECT_EQ(S3Endpoint::parse("http://h", wrong, BucketStyle::kPath).code(),
              Code::kInvalidArgument)
        << wrong;
  }
}

}  // namespace
}  // namespace collect::upload::test
