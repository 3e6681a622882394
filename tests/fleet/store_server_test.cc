// The store of simulated fleets, as the daemon's own client sees it.
#include "tests/fleet/store_server.h"

#include <gtest/gtest.h>

#include "daemon/upload/s3/digests.h"
#include "formats/core/crc32.h"
#include "tests/fleet/simulated_time.h"

namespace collect::fleet {
namespace {

class Text final : public ByteSink {
 public:
  Status write(Bytes bytes) override {
    text += upload::text_of(bytes);
    return {};
  }
  std::string text;
};

class StoreServerTest : public ::testing::Test {
 protected:
  StoreServerTest() {
    auto client = upload::S3Client::create(store_.settings(), credentials_, clock_);
    EXPECT_TRUE(client.ok());
    client_ = std::move(*client);
  }

  Result<std::string> put(const std::string& key, const std::string& body, bool only_new = false) {
    upload::PutOptions options;
    options.only_new = only_new;
    options.crc32c = crc32c(upload::bytes_of(body));
    return client_->put(key, upload::bytes_of(body), options);
  }

  StoreServer store_;
  MachineClock clock_;
  upload::StaticCredentials credentials_{{"access", "secret"}};
  std::unique_ptr<upload::S3Client> client_;
};

TEST_F(StoreServerTest, KeepsAndListsObjects) {
  for (int i = 0; i < 1'100; ++i) {
    ASSERT_TRUE(put("v1/a=" + std::to_string(i) + "/b", "body").ok());
  }
  ASSERT_TRUE(put("v2/x", "another").ok());
  const auto first = client_->list("v1/");
  ASSERT_TRUE(first.ok()) << to_string(first.error());
  EXPECT_EQ(first->entries.size(), 1'000u);
  const auto rest = client_->list("v1/", first->next);
  ASSERT_TRUE(rest.ok());
  EXPECT_EQ(rest->entries.size(), 100u);
  EXPECT_TRUE(rest->next.empty());
  EXPECT_EQ(rest->entries.back().etag, "841a2d689ad86bd1611447453c22c6fc");  // md5sum of "body"
  Text text;
  EXPECT_TRUE(client_->get("v2/x", text).ok());
  EXPECT_EQ(text.text, "another");
  EXPECT_EQ(client_->get("v2/y", text).code(), Code::kNotFound);
  EXPECT_EQ(store_.bytes(), 1'100u * 4 + 7);
}

TEST_F(StoreServerTest, CommitIsWrittenOnce) {
  EXPECT_TRUE(put("v1/COMMIT", "first", true).ok());
  EXPECT_EQ(put("v1/COMMIT", "second", true).code(), Code::kAlreadyExists);
}

TEST_F(StoreServerTest, RefusesWhileAwayAndKeepsAllAfterwards) {
  ASSERT_TRUE(put("v1/x", "body").ok());
  store_.set_away(true);
  EXPECT_EQ(put("v1/y", "body").code(), Code::kUnavailable);
  store_.set_away(false);
  EXPECT_TRUE(put("v1/y", "body").ok());
  EXPECT_EQ(client_->list("v1/")->entries.size(), 2u);
}

TEST_F(StoreServerTest, WrongClockIsRefusedAndCorrectedByTheDate) {
  clock_.set_wall_error(static_cast<int64_t>(3'600 * kNsPerS));
  EXPECT_TRUE(put("v1/x", "body").ok());
  EXPECT_EQ(store_.skewed_requests(), 1u);
  EXPECT_EQ(client_->clock_correction_s(), -3'600);
}

}  // namespace
}  // namespace collect::fleet
