// What a session is called, and what is said to be missing from it.
#include "storage/manifest/session_health.h"

#include "tests/storage/session_fixture.h"

namespace collect::storage::test {
namespace {

TEST(SessionHealthTest, CompleteWithoutLossMissesNothing) {
  const SessionHealth health = health_of(HealthFacts{.state = SessionState::kComplete});
  EXPECT_TRUE(health.is_complete());
  EXPECT_TRUE(health.losses_known);
  EXPECT_EQ(health.missing, "");
}

TEST(SessionHealthTest, CompleteNamesWhatWasCounted) {
  const SessionHealth health =
      health_of(HealthFacts{.state = SessionState::kComplete, .lost_events = 1});
  EXPECT_TRUE(health.is_complete());
  EXPECT_TRUE(health.losses_known);
  EXPECT_EQ(health.missing, "1 event counted as lost while recording");
  EXPECT_EQ(
      health_of(HealthFacts{
                    .state = SessionState::kComplete, .lost_events = 12, .lost_detail_records = 3})
          .missing,
      "12 events and 3 detail records counted as lost while recording");
}

TEST(SessionHealthTest, CompleteWithoutTheEndOfAThreadIsRecovered) {
  const SessionHealth health =
      health_of(HealthFacts{.state = SessionState::kComplete, .threads_not_ended = 2});
  EXPECT_EQ(health.state, SessionState::kRecovered);
  EXPECT_FALSE(health.losses_known);
  EXPECT_EQ(health.missing,
            "the end of 2 threads never came, and what they recorded last may be missing; how much "
            "is not known");
}

TEST(SessionHealthTest, RecoveredAndFailedNeverKnowTheirLosses) {
  const SessionHealth recovered = health_of(
      HealthFacts{.state = SessionState::kRecovered, .reason = "its agent did not come back"});
  EXPECT_FALSE(recovered.is_complete());
  EXPECT_FALSE(recovered.losses_known);
  EXPECT_EQ(recovered.missing,
            "the program's end of the recording never came (its agent did not come back), and what "
            "it recorded last may be missing; how much is not known");
  const SessionHealth failed = health_of(
      HealthFacts{.state = SessionState::kFailed, .reason = "no space", .lost_events = 5});
  EXPECT_FALSE(failed.is_complete());
  EXPECT_FALSE(failed.losses_known);
  EXPECT_EQ(failed.missing,
            "storing ended (no space), and everything after it is missing; how much is not known, "
            "beside the 5 events counted as lost");
}

TEST(SessionHealthTest, NamesUpToThreeMissingInputs) {
  HealthFacts facts{.state = SessionState::kComplete};
  facts.input_missing = {{"events that were cut off", 2}, {"the end of the stream", 0}};
  const SessionHealth health = health_of(facts);
  EXPECT_EQ(health.state, SessionState::kRecovered);
  EXPECT_FALSE(health.losses_known);
  EXPECT_EQ(health.missing,
            "what it was made from lacked 2 events that were cut off, the end of the stream; how "
            "much is not known");
  facts.state = SessionState::kRecovered;
  facts.reason = "converted from dial9";
  facts.input_missing.push_back({"damaged page", 1});
  EXPECT_EQ(health_of(facts).missing,
            "what it was made from lacked 2 events that were cut off, the end of the stream, 1 "
            "damaged page; how much is not known");
  facts.input_missing.push_back({"frames", 3});
  facts.input_missing_left_out = 4;
  EXPECT_EQ(health_of(facts).missing,
            "what it was made from lacked 2 events that were cut off, the end of the stream, 1 "
            "damaged page and 5 more; how much is not known");
  // That storing ended is graver.
  facts.state = SessionState::kFailed;
  EXPECT_EQ(health_of(facts).state, SessionState::kFailed);
  EXPECT_EQ(health_of(facts).missing.find("what it was made from"), std::string::npos);
}

TEST(SessionHealthTest, UnsealedSaysHowToSeal) {
  const SessionHealth health = health_of(HealthFacts{});
  EXPECT_EQ(health.state, SessionState::kRecording);
  EXPECT_FALSE(health.is_complete());
  EXPECT_FALSE(health.losses_known);
  EXPECT_NE(health.missing.find("collectctl recover"), std::string::npos);
}

TEST(SessionHealthTest, ManifestCountsEveryThreadAndThoseWithoutAStream) {
  Manifest manifest;
  manifest.state = SessionState::kComplete;
  manifest.lost_without_stream = 7;
  manifest.threads.resize(2);
  for (ManifestThread& thread : manifest.threads) thread.ended = true;
  manifest.threads[0].lost_events = 2;
  manifest.threads[0].lost_detail_records = 4;
  manifest.threads[1].lost_events = 1;
  const SessionHealth health = health_of(manifest);
  EXPECT_TRUE(health.is_complete());
  EXPECT_EQ(health.lost_events, 10u);
  EXPECT_EQ(health.lost_detail_records, 4u);
  manifest.threads.back().ended = false;
  EXPECT_FALSE(health_of(manifest).is_complete());
}

using WrittenHealthTest = SessionTest;

TEST_F(WrittenHealthTest, WriterAndRecoveryAgreeWithTheManifest) {
  FakeStream stream(atf::Version::kV2, 1, 100);
  stream.add_many(20);
  auto session = make();
  ASSERT_OK(session->open_stream(stream.info()));
  ASSERT_OK(append(*session, stream.index_page(0, 20)));
  EXPECT_EQ(session->health().state, SessionState::kRecording);
  ASSERT_OK(session->close_stream(stream.end()));
  ASSERT_OK(session->seal(SessionState::kComplete, "exit"));
  EXPECT_TRUE(session->health().is_complete());
  EXPECT_TRUE(health_of(manifest_of(session->directory())).is_complete());

  auto killed = make();
  ASSERT_OK(killed->open_stream(stream.info()));
  ASSERT_OK(append(*killed, stream.index_page(0, 20)));
  const std::string directory = killed->directory();
  killed.reset();
  auto recovered = recover_session(fs, options(), directory);
  ASSERT_OK(recovered);
  EXPECT_EQ(recovered->health.state, SessionState::kRecovered);
  EXPECT_FALSE(recovered->health.losses_known);
  EXPECT_EQ(recovered->health.missing, health_of(manifest_of(directory)).missing);
}

}  // namespace
}  // namespace collect::storage::test
