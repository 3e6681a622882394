#include "daemon/upload/s3/credential_sources.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "daemon/upload/s3/credential_file.h"
#include "daemon/upload/s3/digests.h"
#include "daemon/upload/s3/web_identity.h"
#include "formats/core/crc32.h"
#include "tests/daemon/upload/upload_fixture.h"

namespace collect::upload::test {
namespace {

using ::testing::HasSubstr;

// The example of AWS's documentation, and what people write.
constexpr char kFile[] =
    "# a comment = no value\n"
    "[default]\n"
    "aws_access_key_id=AKIAIOSFODNN7EXAMPLE\n"
    "aws_secret_access_key=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\n"
    "\n"
    "[user1]\r\n"
    "  aws_access_key_id = AKIAI44QH8DHBEXAMPLE \r\n"
    "region = us-east-1\n"
    "aws_secret_access_key = je7MtGbClwBF/2Zp9Utk/h3yCo8nvbEXAMPLEKEY=\n"
    "; another\n"
    "aws_session_token = fcZib3JpZ2luX2IQoJb3JpZ2luX2IQ==\n"
    "[half]\n"
    "aws_access_key_id = A\n"
    "[open\n"
    "aws_access_key_id = B\n";

TEST(CredentialFileTest, SelectsTheNamedProfile) {
  const auto first = credentials_of_profile(kFile, "default", "f");
  ASSERT_OK(first);
  EXPECT_EQ(first->access_key_id, "AKIAIOSFODNN7EXAMPLE");
  EXPECT_EQ(first->secret_access_key, "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY");
  EXPECT_EQ(first->session_token, "");
  const auto second = credentials_of_profile(kFile, "user1", "f");
  ASSERT_OK(second);
  EXPECT_EQ(second->access_key_id, "AKIAI44QH8DHBEXAMPLE");
  EXPECT_EQ(second->secret_access_key, "je7MtGbClwBF/2Zp9Utk/h3yCo8nvbEXAMPLEKEY=");
  EXPECT_EQ(second->session_token, "fcZib3JpZ2luX2IQoJb3JpZ2luX2IQ==");
  for (const char* wrong : {"half", "open", "none", ""}) {
    const auto missing = credentials_of_profile(kFile, wrong, "f");
    ASSERT_EQ(missing.code(), Code::kPermission) << wrong;
    EXPECT_THAT(missing.error().message, HasSubstr("f: [" + std::string(wrong) + "]"));
  }
}

class CredentialSourcesTest : public UploadTest {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    const std::string path = folder_.path() + "/" + name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  EnvironmentVariable variable() {
    return [this](const char* name) { return variables_[name]; };
  }
  Result<std::unique_ptr<CredentialsSource>> make(const CredentialSettings& settings = {}) {
    return make_credentials_source(settings, variable(), time_);
  }
  WebIdentitySettings identity() {
    WebIdentitySettings settings;
    settings.token_file = write("token", "token of the pod\n");
    settings.role_arn = "arn:aws:iam::123456789012:role/collector";
    settings.sts_endpoint = server().endpoint();
    return settings;
  }
  storage::test::TemporaryDirectory folder_;
  std::map<std::string, std::string> variables_;
};

TEST_F(CredentialSourcesTest, EnvironmentComesFirstThenWebIdentityThenTheFile) {
  variables_["HOME"] = folder_.path();
  std::filesystem::create_directory(folder_.path() + "/.aws");
  write(".aws/credentials", kFile);
  auto source = make();
  ASSERT_OK(source);
  EXPECT_EQ((*source)->get()->access_key_id, "AKIAIOSFODNN7EXAMPLE");
  variables_["AWS_PROFILE"] = "user1";
  EXPECT_EQ((*make())->get()->access_key_id, "AKIAI44QH8DHBEXAMPLE");
  variables_["AWS_SHARED_CREDENTIALS_FILE"] = folder_.path() + "/none";
  EXPECT_EQ((*make())->get().code(), Code::kPermission);

  variables_["AWS_WEB_IDENTITY_TOKEN_FILE"] = write("token", "token of the pod");
  EXPECT_EQ((*make())->get().code(), Code::kPermission);  // no role: still the file
  variables_["AWS_ROLE_ARN"] = "arn";
  variables_["AWS_ENDPOINT_URL_STS"] = server().endpoint();
  EXPECT_THAT((*make())->get()->access_key_id, HasSubstr("STS"));

  variables_["AWS_ACCESS_KEY_ID"] = "E";
  source = make();
  EXPECT_EQ((*source)->get().code(), Code::kPermission);
  variables_["AWS_SECRET_ACCESS_KEY"] = "S";
  variables_["AWS_SESSION_TOKEN"] = "T";
  EXPECT_EQ((*source)->get()->session_token, "T");
  CredentialSettings file;
  file.kind = CredentialKind::kFile;
  file.file = folder_.path() + "/.aws/credentials";
  file.profile = "default";
  EXPECT_EQ((*make(file))->get()->access_key_id, "AKIAIOSFODNN7EXAMPLE");
}

TEST_F(CredentialSourcesTest, NamesMissingSettings) {
  EXPECT_EQ(make().code(), Code::kInvalidArgument);  // not even a home
  CredentialSettings identity_wanted;
  identity_wanted.kind = CredentialKind::kWebIdentity;
  EXPECT_THAT(make(identity_wanted).error().message, HasSubstr("AWS_WEB_IDENTITY_TOKEN_FILE"));
}

TEST_F(CredentialSourcesTest, FileThatChangesIsReadAgain) {
  const auto keys = [](const std::string& key) {
    return "[default]\naws_access_key_id=" + key + "\naws_secret_access_key=S\n";
  };
  FileCredentials source(write("keys", keys("A")), "default", time_);
  EXPECT_EQ(source.get()->access_key_id, "A");
  write("keys", keys("B"));
  EXPECT_EQ(source.get()->access_key_id, "A");
  source.invalidate();
  EXPECT_EQ(source.get()->access_key_id, "B");
  write("keys", keys("C"));
  time_.pause(kReadFileAgainNs);
  EXPECT_EQ(source.get()->access_key_id, "C");
}

TEST_F(CredentialSourcesTest, SecretFilesHaveALimit) {
  EXPECT_EQ(read_secret_file(write("long", std::string(11, 'x')), 10).code(), Code::kLimit);
  EXPECT_EQ(*read_secret_file(write("fits", std::string(10, 'x')), 10), std::string(10, 'x'));
  // As Kubernetes mounts them.
  std::filesystem::create_symlink("fits", folder_.path() + "/link");
  EXPECT_OK(read_secret_file(folder_.path() + "/link", 10));
}

TEST_F(CredentialSourcesTest, KeysForATokenAreRenewedBeforeTheyEnd) {
  WebIdentityCredentials source(identity(), time_);
  const auto first = source.get();
  ASSERT_OK(first);
  EXPECT_FALSE(first->session_token.empty());
  EXPECT_NEAR(static_cast<double>(first->expires_unix_ns),
              static_cast<double>(time_.unix_ns() + 3600'000'000'000), 3e9);
  EXPECT_EQ(source.get()->access_key_id, first->access_key_id);
  time_.pause(3600'000'000'000 - kRenewBeforeNs + 3'000'000'000);
  const auto second = source.get();
  ASSERT_OK(second);
  EXPECT_NE(second->access_key_id, first->access_key_id);
  source.invalidate();
  EXPECT_NE(source.get()->access_key_id, second->access_key_id);
}

TEST_F(CredentialSourcesTest, OldKeysLastUntilTheyExpireWithoutTheService) {
  auto away = std::make_unique<FakeS3>();
  WebIdentitySettings settings = identity();
  settings.sts_endpoint = away->endpoint();
  WebIdentityCredentials source(settings, time_);
  const auto first = source.get();
  ASSERT_OK(first);
  away.reset();
  time_.pause(3600'000'000'000 - kRenewBeforeNs + 3'000'000'000);
  EXPECT_EQ(source.get()->access_key_id, first->access_key_id);
  time_.pause(kRenewBeforeNs);
  EXPECT_EQ(source.get().code(), Code::kUnavailable);
}

TEST_F(CredentialSourcesTest, RefusedTokenIsSaid) {
  WebIdentitySettings settings = identity();
  write("token", "another");
  WebIdentityCredentials source(settings, time_);
  const auto refused = source.get();
  EXPECT_EQ(refused.code(), Code::kPermission);
  EXPECT_THAT(refused.error().message, HasSubstr("400 InvalidIdentityToken"));
  std::filesystem::remove(settings.token_file);
  EXPECT_THAT(source.get().error().message, HasSubstr(settings.token_file));
}

// Keys that the server forgets before their time are replaced within one request.
TEST_F(CredentialSourcesTest, UploadContinuesAfterItsKeysEnd) {
  WebIdentityCredentials source(identity(), time_);
  const auto client = S3Client::create(server().settings(), source, time_);
  PutOptions options;
  options.crc32c = crc32c(bytes_of("x"));
  EXPECT_OK((*client)->put("k", bytes_of("x"), options));
  WebIdentityCredentials other(identity(), time_);
  EXPECT_OK(other.get());  // the fake knows the newest keys alone
  EXPECT_OK((*client)->put("k", bytes_of("x"), options));
}

TEST(ParseUtcTest, DatesAsStsWritesThem) {
  EXPECT_EQ(parse_utc("1970-01-01T00:00:01Z"), 1u);
  EXPECT_EQ(parse_utc("2013-05-24T00:00:00Z"), 1369353600u);  // date -u -d … +%s
  EXPECT_EQ(parse_utc("2013-05-24T00:00:00.123Z"), 1369353600u);
  for (const char* wrong : {"", "2013-05-24T00:00:00", "2013-05-24 00:00:00Z",
                            "x013-05-24T00:00:00Z", "1969-01-01T00:00:00Z"}) {
    EXPECT_EQ(parse_utc(wrong), std::nullopt) << wrong;
  }
}

}  // namespace
}  // namespace collect::upload::test
