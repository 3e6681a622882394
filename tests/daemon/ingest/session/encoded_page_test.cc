// Pages that were encoded for the way: what is stored is what was encoded, with any part of it
// stored before; and those that no encoder makes.
#include <gmock/gmock.h>

#include <random>

#include "daemon/ingest/clock/clock_fit.h"
#include "tests/daemon/ingest/ingest_fixture.h"

namespace collect::ingest {
namespace {

using fakes::FakeAgent;
using fakes::FakeProcess;
using fakes::index_events;
using fakes::index_page_header;
using testing::HasSubstr;

class EncodedPageTest : public IngestTest {
 protected:
  EncodedPageTest() { process_.features = wire::kFeatureColumns | 1u << 17; }

  static bool send_encoded(FakeAgent& agent, uint32_t stream, uint64_t first, uint32_t count) {
    return agent.data().send_bytes(fakes::encoded_page_frame_bytes(
        index_page_header(stream, first, count), index_events(first, count)));
  }

  // An agent in mid-recording that sends `bytes` on data; what it receives. What came before is
  // kept.
  wire::Refuse refusal_of(Bytes bytes) {
    FakeAgent bad(process_);
    EXPECT_TRUE(bad.connect(address()));
    EXPECT_TRUE(bad.start_recording(1));
    EXPECT_TRUE(bad.open_stream(1, 11));
    EXPECT_TRUE(send_encoded(bad, 1, 0, 100));
    EXPECT_TRUE(bad.data().send_bytes(bytes));
    if (!bad.wait_refused()) {
      ADD_FAILURE() << "nothing was said";
      return {};
    }
    EXPECT_TRUE(bad.data().ends());
    const auto session = reported_.session([this](const auto& s) {
      return s.pid == process_.pid && s.state != SessionState::kActive && s.totals.events == 100;
    });
    EXPECT_TRUE(session.has_value()) << "what came before is stored";
    ++process_.id_byte;
    ++process_.pid;
    return bad.refused().value_or(wire::Refuse());
  }

  FakeProcess process_;
};

TEST_F(EncodedPageTest, RawAndEncodedPagesBecomeTheSameFile) {
  start();
  FakeAgent agent(process_);
  ASSERT_TRUE(agent.connect(address()));
  EXPECT_EQ(agent.welcome().features(), wire::kFeatureColumns) << "and no unknown bit";
  ASSERT_TRUE(agent.start_recording(1));
  ASSERT_TRUE(agent.open_stream(1, 11));
  // More than there is room to decode at once, in one burst.
  constexpr uint32_t kPage = 32'000;
  uint64_t next = 0;
  for (int i = 0; i < 5; ++i) {
    const auto encoded =
        fakes::encoded_page_frame_bytes(index_page_header(1, next, 2048), index_events(next, 2048));
    ASSERT_LT(encoded.size(), 2048u * 8);
    ASSERT_TRUE(agent.data().send_bytes(encoded));
    next += 2048;
    ASSERT_TRUE(agent.send_events(1, next, kPage));
    next += kPage;
  }
  for (int i = 0; i < 40; ++i, next += 2000) ASSERT_TRUE(send_encoded(agent, 1, next, 2000));
  ASSERT_TRUE(agent.close_stream(1, next));
  ASSERT_TRUE(agent.end_recording());
  ASSERT_TRUE(agent.wait_recording_ended(1));
  const auto session = reported_.session_in(SessionState::kComplete);
  ASSERT_TRUE(session.has_value());
  EXPECT_EQ(session->totals.lost_events, 0u);
  EXPECT_EQ(stored_events(*session, 0, next), index_events(0, static_cast<uint32_t>(next)));
  EXPECT_EQ(ingest_->counters().pages_decoded, 45u);
}

TEST_F(EncodedPageTest, TuplesAreForAgentsOfThisMachine) {
  start();
  process_.features |= wire::kFeatureTuples;
  process_.boot_id = boot_id();
  ASSERT_FALSE(process_.boot_id.empty());
  FakeAgent agent(process_);
  ASSERT_TRUE(agent.connect(address()));
  EXPECT_EQ(agent.welcome().features(), wire::kFeatureColumns | wire::kFeatureTuples);
  ASSERT_TRUE(agent.start_recording(1));
  ASSERT_TRUE(agent.open_stream(1, 11));
  uint64_t next = 0;
  for (int i = 0; i < 20; ++i) {
    const auto page =
        fakes::tuple_page_frame_bytes(index_page_header(1, next, 2048), index_events(next, 2048));
    ASSERT_LT(page.size(), 2048u * 4);
    ASSERT_TRUE(agent.data().send_bytes(page));
    next += 2048;
    ASSERT_TRUE(send_encoded(agent, 1, next, 100));
    next += 100;
  }
  ASSERT_TRUE(agent.close_stream(1, next));
  ASSERT_TRUE(agent.end_recording());
  ASSERT_TRUE(agent.wait_recording_ended(1));
  const auto session = reported_.session_in(SessionState::kComplete);
  ASSERT_TRUE(session.has_value());
  EXPECT_EQ(stored_events(*session, 0, next), index_events(0, static_cast<uint32_t>(next)));
  EXPECT_EQ(ingest_->counters().pages_decoded, 40u);

  // Of another machine, bytes are what counts.
  process_.boot_id = "another";
  ++process_.id_byte;
  FakeAgent far(process_);
  ASSERT_TRUE(far.connect(address()));
  EXPECT_EQ(far.welcome().features(), wire::kFeatureColumns);
  ASSERT_TRUE(far.start_recording(1));
  ASSERT_TRUE(far.open_stream(1, 11));
  ASSERT_TRUE(far.data().send_bytes(
      fakes::tuple_page_frame_bytes(index_page_header(1, 0, 100), index_events(0, 100))));
  ASSERT_TRUE(far.wait_refused());
  EXPECT_THAT(far.refused()->reason(), HasSubstr("codec 2, which was not agreed on"));
}

TEST_F(EncodedPageTest, CutsAnOverlappingPageAfterDecoding) {
  start();
  FakeAgent agent(process_);
  ASSERT_TRUE(agent.connect(address()));
  ASSERT_TRUE(agent.start_recording(1));
  ASSERT_TRUE(agent.open_stream(1, 11));
  ASSERT_TRUE(send_encoded(agent, 1, 0, 1000));
  ASSERT_TRUE(agent.wait_stored(1, 1000));
  const auto cut =
      fakes::encoded_page_frame_bytes(index_page_header(1, 1000, 1000), index_events(1000, 1000));
  ASSERT_TRUE(agent.data().send_bytes(Bytes(cut).first(cut.size() - 1)));
  agent.disconnect();
  ASSERT_TRUE(reported_.session_in(SessionState::kInterrupted).has_value());

  ASSERT_TRUE(agent.connect(address()));
  EXPECT_EQ(agent.resumed().at(1).index_next(), 1000u);
  ASSERT_TRUE(agent.start_recording(1));
  ASSERT_TRUE(agent.open_stream(1, 11));
  ASSERT_TRUE(send_encoded(agent, 1, 0, 700));     // stored already
  ASSERT_TRUE(send_encoded(agent, 1, 700, 1300));  // in part
  ASSERT_TRUE(agent.close_stream(1, 2000));
  ASSERT_TRUE(agent.end_recording());
  ASSERT_TRUE(agent.wait_recording_ended(1));
  const auto session = reported_.session_in(SessionState::kComplete);
  ASSERT_TRUE(session.has_value());
  EXPECT_EQ(stored_events(*session, 0, 2000), index_events(0, 2000));
}

TEST_F(EncodedPageTest, OnlyWhatWasAgreedOn) {
  start();
  const auto page =
      fakes::encoded_page_frame_bytes(index_page_header(1, 100, 100), index_events(100, 100));
  // The agent did not offer it.
  FakeAgent plain;
  ASSERT_TRUE(plain.connect(address()));
  EXPECT_EQ(plain.welcome().features(), 0u);
  ASSERT_TRUE(plain.start_recording(1));
  ASSERT_TRUE(plain.open_stream(1, 11));
  ASSERT_TRUE(plain.data().send_bytes(page));
  ASSERT_TRUE(plain.wait_refused());
  EXPECT_THAT(plain.refused()->reason(), HasSubstr("codec 1, which was not agreed on"));
  EXPECT_TRUE(plain.refused()->retry());
  // The collector does not want it.
  stop();
  options_.page_codecs = false;
  start();
  FakeAgent able(process_);
  able.resume_key() = plain.resume_key();
  ASSERT_TRUE(able.connect(address()));
  EXPECT_EQ(able.welcome().features(), 0u);
}

// A mask of four such bytes, and a block that decodes to so many zeros.
std::vector<uint8_t> zeros(uint8_t mask, uint32_t count) {
  std::vector<uint8_t> bytes{mask, mask, mask, mask, 0x1f, 0, 1, 0};
  const uint32_t rest = count - 1 - 5 - 19;
  bytes.insert(bytes.end(), rest / 255, 255);
  bytes.push_back(static_cast<uint8_t>(rest % 255));
  bytes.insert(bytes.end(), {0x50, 0, 0, 0, 0, 0});
  return bytes;
}

// The same bytes would come again: refused for good, as records that are none.
TEST_F(EncodedPageTest, RefusesUndecodablePagesForGood) {
  start();
  const auto records = index_events(100, 100);
  const auto good = fakes::encoded_page_frame_bytes(index_page_header(1, 100, 100), records);
  const std::vector<uint8_t> sent(good.begin() + wire::kPagePrefixBytes, good.end());
  const auto refused = [&](PageHeader header, Bytes bytes, uint32_t raw_bytes) {
    const wire::Refuse refuse =
        refusal_of(fakes::encoded_page_frame_bytes(header, bytes, raw_bytes));
    EXPECT_EQ(refuse.code(), wire::REFUSE_PROTOCOL);
    EXPECT_FALSE(refuse.retry()) << refuse.reason();
    return refuse.reason();
  };
  EXPECT_THAT(refused(index_page_header(1, 100, 99), sent, 99 * 32),
              HasSubstr("does not decode to the length"));
  EXPECT_THAT(refused(index_page_header(1, 100, 101), sent, 101 * 32),
              HasSubstr("does not decode to the length"));
  EXPECT_THAT(refused(index_page_header(1, 100, 100), Bytes(sent).first(sent.size() - 1), 3200),
              HasSubstr("does not decode to the length"));
  EXPECT_THAT(refused(index_page_header(1, 100, 100), {}, 3200),
              HasSubstr("does not decode to the length"));
  std::vector<uint8_t> noise(1000);
  std::mt19937 random(1);
  for (uint8_t& byte : noise) byte = static_cast<uint8_t>(random());
  EXPECT_THAT(refused(index_page_header(1, 100, 100), noise, 3200),
              HasSubstr("does not decode to the length"));
  PageHeader detail = index_page_header(1, 100, 1);
  detail.lane = Lane::kDetail;
  detail.first_seq = 0;
  EXPECT_THAT(refused(detail, zeros(0, 3200), 3200), HasSubstr("not as long as"));
  // A megabyte out of 4 KiB: it decodes, into events of no kind.
  const auto bomb = zeros(0xFF, wire::kMaxPageBytes);
  EXPECT_THAT(
      refused(index_page_header(1, 100, wire::kMaxPageBytes / 32), bomb, wire::kMaxPageBytes),
      Not(HasSubstr("LZ4")));
}

}  // namespace
}  // namespace collect::ingest
