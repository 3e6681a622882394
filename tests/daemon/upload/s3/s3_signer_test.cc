// The examples of "Authenticating Requests (AWS Signature Version 4)", whose signatures AWS
// publishes.
#include "daemon/upload/s3/s3_signer.h"

#include <gtest/gtest.h>

#include "daemon/upload/s3/digests.h"
#include "daemon/upload/s3/uri.h"
#include "formats/core/text/hex.h"

namespace collect::upload {
namespace {

constexpr uint64_t kExampleTime = 1369353600;  // 20130524T000000Z

std::string signature_of(std::string_view method, std::string_view key, const QueryFields& query,
                         std::vector<HttpField> headers, std::string_view body = "") {
  const Credentials credentials{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"};
  const std::string path = "/" + encode_path(key);
  const std::string encoded = canonical_query(query);
  const std::string hash = hex_bytes(sha256(bytes_of(body)));
  S3Signer("us-east-1")
      .sign({method, "examplebucket.s3.amazonaws.com", path, encoded, hash}, credentials,
            kExampleTime, headers);
  const std::string& text = headers.back().value;
  EXPECT_EQ(headers.back().name, "authorization");
  return text.substr(text.rfind('=') + 1);
}

TEST(S3SignerTest, GetObjectWithRange) {
  EXPECT_EQ(signature_of("GET", "test.txt", {}, {{"range", "bytes=0-9"}}),
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

TEST(S3SignerTest, PutObject) {
  EXPECT_EQ(signature_of("PUT", "test$file.text", {},
                         {{"date", "Fri, 24 May 2013 00:00:00 GMT"},
                          {"x-amz-storage-class", "REDUCED_REDUNDANCY"}},
                         "Welcome to Amazon S3."),
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
}

TEST(S3SignerTest, GetBucketLifecycle) {
  EXPECT_EQ(signature_of("GET", "", {{"lifecycle", ""}}, {}),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
}

TEST(S3SignerTest, ListObjects) {
  EXPECT_EQ(signature_of("GET", "", {{"prefix", "J"}, {"max-keys", "2"}}, {}),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

TEST(S3SignerTest, SessionTokenIsSigned) {
  Credentials credentials{"A", "S", "token==", 0};
  std::vector<HttpField> headers;
  S3Signer("r").sign({"GET", "h", "/", "", kUnsignedPayload}, credentials, kExampleTime, headers);
  ASSERT_EQ(headers.size(), 4u);
  EXPECT_EQ(headers[0].value, "20130524T000000Z");
  EXPECT_EQ(headers[2].name, "x-amz-security-token");
  EXPECT_NE(headers[3].value.find("host;x-amz-content-sha256;x-amz-date;x-amz-security-token"),
            std::string::npos);
}

TEST(UriTest, OnlyUnreservedCharactersStayRaw) {
  EXPECT_EQ(encode_uri("aZ09-._~"), "aZ09-._~");
  EXPECT_EQ(encode_uri("a/b=c+d:e f\xff"), "a%2Fb%3Dc%2Bd%3Ae%20f%FF");
  EXPECT_EQ(encode_path("v1/ab/device=D/x"), "v1/ab/device%3DD/x");
  // Sorted as encoded: '%' is less than any letter.
  EXPECT_EQ(canonical_query({{"uploads", ""}, {"a", "z"}, {"a", "/"}}), "a=%2F&a=z&uploads=");
}

TEST(UriTest, DecodesWhatIsEncodedAndNothingElse) {
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  EXPECT_EQ(decode_uri(encode_uri(all)), all);
  EXPECT_EQ(decode_uri("%"), std::nullopt);
  EXPECT_EQ(decode_uri("%4"), std::nullopt);
  EXPECT_EQ(decode_uri("%g0"), std::nullopt);
  EXPECT_EQ(decode_uri("a+b"), "a+b");
}

// RFC 3720 B.4: 32 bytes of zeros have 8a9136aa; RFC 1321: the digest of "abc".
TEST(DigestsTest, AsTheSpecificationsSay) {
  EXPECT_EQ(base64_crc32c(0x8a9136aa), "ipE2qg==");
  EXPECT_EQ(hex_bytes(md5(bytes_of("abc"))), "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(base64({}), "");
  EXPECT_EQ(base64(bytes_of("a")), "YQ==");
}

}  // namespace
}  // namespace collect::upload
