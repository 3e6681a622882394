// dial9 streams that services send to the ingest port: whole, in pieces, broken, and beside agents.
#include <gmock/gmock.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <thread>

#include "tests/daemon/ingest/ingest_fixture.h"
#include "tests/fakes/dial9_stream.h"
#include "tests/formats/reference_files.h"

namespace collect::ingest {
namespace {

using fakes::dial9_stream;
using fakes::dial9_whole_bytes;
using fakes::FrameSocket;
using fakes::kDial9Example;
using testing::HasSubstr;

class Dial9FeedTest : public IngestTest {
 protected:
  // A peer that closes at once may be gone before anybody can ask whose it was.
  Dial9FeedTest() { options_.local_access = *principal::LocalAccess::parse("any"); }

  FrameSocket connect() { return FrameSocket::connect(address()); }
  // Sends the bytes and closes; the session that came of it, when it is over.
  std::optional<SessionSnapshot> session_of(Bytes bytes) {
    FrameSocket feed = connect();
    EXPECT_TRUE(feed.send_bytes(bytes));
    feed.end_sending();
    EXPECT_TRUE(feed.ends());
    return next_over();
  }
  // A session that is over and was not returned yet.
  std::optional<SessionSnapshot> next_over() {
    const auto session = reported_.session(
        [this](const auto& one) { return is_over(one.state) && !seen_.contains(one.name); });
    if (session) seen_.insert(session->name);
    return session;
  }
  std::optional<SessionSnapshot> when_stored(uint64_t bytes) {
    return reported_.session([bytes](const auto& one) { return one.totals.stored_bytes == bytes; });
  }
  static std::vector<uint8_t> bytes_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static std::vector<uint8_t> stored(const SessionSnapshot& session) {
    return bytes_of(session.directory + "/stream.dial9");
  }

  std::set<std::string> seen_;
};

TEST_F(Dial9FeedTest, WholeStreamIsStoredByteForByte) {
  start();
  const std::vector<uint8_t> stream = dial9_stream(7, 8'000);
  ASSERT_GT(stream.size(), 3 * kReadBufferBytes);
  const auto session = session_of(stream);
  ASSERT_TRUE(session.has_value());
  EXPECT_EQ(session->state, SessionState::kComplete);
  EXPECT_EQ(session->process_name, "dial9");
  EXPECT_EQ(session->pid, 0u);
  EXPECT_EQ(session->agent, 0u);
  EXPECT_TRUE(session->name.ends_with("/pid_0")) << session->name;
  EXPECT_THAT(session->device_id, HasSubstr("127.0.0.1:"));
  EXPECT_EQ(session->totals.stored_bytes, stream.size());
  EXPECT_EQ(session->totals.threads, 0u);
  EXPECT_EQ(ingest_->counters().bytes_stored, stream.size());
  EXPECT_EQ(ingest_->counters().bytes_received, stream.size());
  EXPECT_TRUE(stored(*session) == stream);
  EXPECT_THAT(manifest(*session), HasSubstr("\"stream.dial9\""));
}

TEST_F(Dial9FeedTest, ByteByByteItIsTheSameStream) {
  start();
  const std::vector<uint8_t> stream = dial9_stream(3, 10);
  FrameSocket feed = connect();
  for (const uint8_t& byte : stream) ASSERT_TRUE(feed.send_bytes({&byte, 1}));
  feed.close();
  const auto session = next_over();
  ASSERT_TRUE(session.has_value());
  EXPECT_EQ(session->state, SessionState::kComplete);
  EXPECT_EQ(stored(*session), stream);
}

// A feed has said who it is with its first bytes; what it sends may come much later.
TEST_F(Dial9FeedTest, FeedMayBeSilentBeyondTheHelloDeadline) {
  start();
  FrameSocket feed = connect();
  ASSERT_TRUE(feed.send_bytes(Bytes(kDial9Example).first(5)));
  ASSERT_TRUE(when_stored(5));
  std::this_thread::sleep_for(kHelloDeadline + 2 * kSweepInterval);
  ASSERT_TRUE(feed.send_bytes(Bytes(kDial9Example).subspan(5)));
  feed.end_sending();
  const auto session = next_over();
  ASSERT_TRUE(session.has_value());
  EXPECT_EQ(session->state, SessionState::kComplete);
  EXPECT_EQ(stored(*session),
            std::vector<uint8_t>(std::begin(kDial9Example), std::end(kDial9Example)));
}

TEST_F(Dial9FeedTest, HeaderAloneIsAStream) {
  start();
  const auto session = session_of(Bytes(kDial9Example).first(5));
  ASSERT_TRUE(session.has_value());
  EXPECT_EQ(session->state, SessionState::kComplete);
  EXPECT_EQ(stored(*session).size(), 5u);
}

TEST_F(Dial9FeedTest, BrokenStreamKeepsItsWholeFrames) {
  start();
  const std::vector<uint8_t> stream = dial9_stream(3, 9'000);
  std::mt19937 random(7);
  for (int round = 0; round < 16; ++round) {
    SCOPED_TRACE(round);
    const Bytes cut = Bytes(stream).first(5 + random() % (stream.size() - 5));
    const size_t whole = dial9_whole_bytes(cut);
    const auto session = session_of(cut);
    ASSERT_TRUE(session.has_value());
    EXPECT_EQ(session->totals.stored_bytes, whole);
    EXPECT_TRUE(stored(*session) == std::vector<uint8_t>(cut.begin(), cut.begin() + long(whole)));
    if (whole == cut.size()) {
      EXPECT_EQ(session->state, SessionState::kComplete);
      continue;
    }
    EXPECT_EQ(session->state, SessionState::kRecovered);
    EXPECT_THAT(session->status, HasSubstr("truncated: at"));
    EXPECT_THAT(manifest(*session),
                HasSubstr("\"refused_bytes\": " + std::to_string(cut.size() - whole)));
  }
}

TEST_F(Dial9FeedTest, GarbageBehindAGoodPartEndsTheConnection) {
  start();
  for (const size_t good_events : {0u, 60'000u}) {
    const std::vector<uint8_t> good = dial9_stream(1, uint32_t(good_events + 1));
    std::vector<uint8_t> bytes = good;
    bytes.insert(bytes.end(), {0xEE, 1, 2, 3});
    FrameSocket feed = connect();
    ASSERT_TRUE(feed.send_bytes(bytes));
    EXPECT_TRUE(feed.ends());  // ours is still open
    const auto session = next_over();
    ASSERT_TRUE(session.has_value());
    EXPECT_EQ(session->state, SessionState::kRecovered);
    EXPECT_THAT(session->status, HasSubstr("tag: at " + std::to_string(good.size())));
    EXPECT_THAT(session->status, HasSubstr("238"));
    EXPECT_TRUE(stored(*session) == good);
    EXPECT_THAT(manifest(*session), HasSubstr("\"refused_bytes\": 4"));
  }
}

TEST_F(Dial9FeedTest, FramesMayExceedABufferUpToALimit) {
  start();
  const std::vector<uint8_t> large = fakes::dial9_stream_with_large_event(3u << 20);
  const auto session = session_of(large);
  ASSERT_TRUE(session.has_value());
  EXPECT_EQ(session->state, SessionState::kComplete);
  EXPECT_TRUE(stored(*session) == large);

  FrameSocket feed = connect();
  (void)feed.send_bytes(fakes::dial9_stream_with_large_event(kMaxFeedFrameBytes));
  EXPECT_TRUE(feed.ends());
  const auto refused = next_over();
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->state, SessionState::kRecovered);
  EXPECT_THAT(refused->status, HasSubstr("frame-size"));
}

// DAEMON.md "Limits": 16 MiB of schemas and annotations.
TEST_F(Dial9FeedTest, SchemasMayTakeSoMuchMemory) {
  start();
  const auto with_schemas = [](uint16_t count) {
    dial9::Encoder encoder;
    for (uint16_t id = 1; id <= count; ++id) {
      const auto type =
          encoder.define({.type_id = id, .name = std::string(60'000, 'n'), .fields = {}});
      EXPECT_TRUE(type.ok());
      encoder.begin_event(*type, 1);
      EXPECT_TRUE(encoder.end_event());
    }
    return encoder.take();
  };
  const auto within = session_of(with_schemas(kMaxFeedStateBytes / 60'000 * 9 / 10));
  ASSERT_TRUE(within.has_value());
  EXPECT_EQ(within->state, SessionState::kComplete) << within->status;
  FrameSocket feed = connect();
  (void)feed.send_bytes(with_schemas(kMaxFeedStateBytes / 60'000 + 1));
  EXPECT_TRUE(feed.ends());
  const auto beyond = next_over();
  ASSERT_TRUE(beyond.has_value());
  EXPECT_EQ(beyond->state, SessionState::kRecovered);
  EXPECT_THAT(beyond->status, HasSubstr("dial9: state"));
}

TEST_F(Dial9FeedTest, ResetIsNoCleanEnd) {
  start();
  FrameSocket feed = connect();
  ASSERT_TRUE(feed.send_bytes(kDial9Example));
  ASSERT_TRUE(when_stored(kDial9Example.size()));
  feed.reset();
  const auto session = next_over();
  ASSERT_TRUE(session.has_value());
  EXPECT_EQ(session->state, SessionState::kRecovered);
  EXPECT_THAT(session->status, HasSubstr("the connection broke"));
  EXPECT_EQ(stored(*session), kDial9Example);
}

TEST_F(Dial9FeedTest, WhereATokenIsAskedForFeedsAreRefused) {
  options_.token = "secret";
  start();
  FrameSocket feed = connect();
  ASSERT_TRUE(feed.send_bytes(Bytes(kDial9Example).first(5)));
  EXPECT_TRUE(feed.ends());
  EXPECT_TRUE(eventually([this] { return ingest_->counters().connections_refused == 1; }));
  EXPECT_EQ(reported_.session_count(), 0u);
  ASSERT_TRUE(ingest_->set_access("", nullptr).ok());
  const auto session = session_of(kDial9Example);
  ASSERT_TRUE(session.has_value());
  EXPECT_EQ(session->state, SessionState::kComplete);
}

TEST_F(Dial9FeedTest, OtherVersionsAndHalfHeadersAreNoFeeds) {
  start();
  const std::vector<std::vector<uint8_t>> unknown = {
      {'T', 'R', 'C', 0, 2}, {'T', 'R', 'C', 0}, {'T', 'R', 'C'}, {'T', 'R', 'C', 1, 1}};
  for (const std::vector<uint8_t>& bytes : unknown) {
    FrameSocket feed = connect();
    ASSERT_TRUE(feed.send_bytes(bytes));
    feed.end_sending();
    EXPECT_TRUE(feed.ends());
  }
  EXPECT_TRUE(
      eventually([&] { return ingest_->counters().connections_refused == unknown.size(); }));
  EXPECT_EQ(reported_.session_count(), 0u);
}

TEST_F(Dial9FeedTest, MoreFeedsThanTheLimitAreRefused) {
  start();
  std::vector<FrameSocket> feeds;
  for (uint32_t count = 0; count < kMaxFeeds; ++count) {
    feeds.push_back(connect());
    ASSERT_TRUE(feeds.back().send_bytes(kDial9Example));
  }
  ASSERT_TRUE(eventually([this] { return reported_.session_count() == kMaxFeeds; }));
  const auto expect_refused = [this] {
    const uint64_t refused = ingest_->counters().connections_refused;
    FrameSocket one_more = connect();
    ASSERT_TRUE(one_more.send_bytes(kDial9Example));
    EXPECT_TRUE(one_more.ends());
    EXPECT_EQ(ingest_->counters().connections_refused, refused + 1);
  };
  expect_refused();
  expect_refused();  // one that was refused makes no room
  feeds.pop_back();
  ASSERT_TRUE(next_over());
  feeds.push_back(connect());
  ASSERT_TRUE(feeds.back().send_bytes(kDial9Example));
  ASSERT_TRUE(eventually([this] { return reported_.session_count() == kMaxFeeds + 1; }));
  expect_refused();  // and one that is over makes room for one
}

TEST_F(Dial9FeedTest, FeedsAndAgentsDoNotDisturbEachOther) {
  options_.storage.capture.enabled = true;
  start();
  const std::vector<uint8_t> streams[] = {dial9_stream(4, 20'000, 1), dial9_stream(5, 15'000, 2)};
  std::vector<std::thread> senders;
  for (const std::vector<uint8_t>& stream : streams) {
    senders.emplace_back([this, &stream] {
      FrameSocket feed = connect();
      for (size_t at = 0; at < stream.size(); at += 10'007) {
        const size_t count = std::min<size_t>(10'007, stream.size() - at);
        EXPECT_TRUE(feed.send_bytes(Bytes(stream).subspan(at, count)));
      }
    });
  }
  fakes::FakeAgent agent;
  ASSERT_TRUE(agent.connect(address()));
  record_all(agent, 1, 1, 50'000);
  for (std::thread& sender : senders) sender.join();
  size_t agents = 0, feeds = 0;
  for (int count = 0; count < 3; ++count) {
    const auto session = next_over();
    ASSERT_TRUE(session.has_value());
    EXPECT_EQ(session->state, SessionState::kComplete) << session->status;
    if (session->agent != 0) {
      ++agents;
      EXPECT_EQ(session->totals.events, 50'000u);
      continue;
    }
    ++feeds;
    const std::vector<uint8_t> kept = stored(*session);
    EXPECT_TRUE(kept == streams[0] || kept == streams[1]);
    EXPECT_TRUE(std::filesystem::exists(session->directory + "/capture-000001.rtc"));
  }
  EXPECT_EQ(agents, 1u);
  EXPECT_EQ(feeds, 2u);
}

TEST_F(Dial9FeedTest, StopEndsAFeedBehindItsLastWholeFrame) {
  start();
  FrameSocket feed = connect();
  ASSERT_TRUE(feed.send_bytes(Bytes(kDial9Example).first(30)));  // within the second event
  const auto session = when_stored(26);
  ASSERT_TRUE(session.has_value());
  EXPECT_EQ(session->state, SessionState::kActive);
  const auto nothing = answer_of<SessionSnapshot>(
      [&](auto done) { ingest_->stop_feed("session_20260101_000000/pid_0", done); });
  EXPECT_EQ(nothing.code(), Code::kNotFound);
  const auto stopped =
      answer_of<SessionSnapshot>([&](auto done) { ingest_->stop_feed(session->name, done); });
  ASSERT_TRUE(stopped.ok()) << to_string(stopped.error());
  EXPECT_EQ(stopped->state, SessionState::kComplete);
  EXPECT_EQ(stopped->status, "stopped by command");
  EXPECT_TRUE(feed.ends());
  EXPECT_EQ(stored(*stopped).size(), 26u);
  EXPECT_THAT(manifest(*stopped), HasSubstr("\"refused_bytes\": 4"));
  EXPECT_THAT(manifest(*stopped), HasSubstr("had not come whole: stopped by command"));
}

TEST_F(Dial9FeedTest, StoppingCollectorSealsWhatCame) {
  start();
  const std::vector<uint8_t> stream = dial9_stream(2, 5'000);
  const size_t cut = stream.size() - 3;
  FrameSocket feed = connect();
  ASSERT_TRUE(feed.send_bytes(Bytes(stream).first(cut)));
  const size_t whole = dial9_whole_bytes(Bytes(stream).first(cut));
  ASSERT_TRUE(when_stored(whole));
  EXPECT_TRUE(ingest_->stop(kShutdownBound));
  const auto session = next_over();
  ASSERT_TRUE(session.has_value());
  EXPECT_EQ(session->state, SessionState::kRecovered);
  EXPECT_EQ(session->status, "collector stopped");
  EXPECT_TRUE(stored(*session) ==
              std::vector<uint8_t>(stream.begin(), stream.begin() + long(whole)));
  EXPECT_TRUE(feed.ends());
}

// A collector that was killed leaves an unsealed session, which waits for no one.
TEST_F(Dial9FeedTest, NextStartSealsWhatAKilledCollectorLeft) {
  std::string directory;
  {
    storage::SessionIdentity identity;
    identity.process_id = {7};
    identity.process_name = "dial9";
    auto writer = storage::Session::create(posix_, options_.storage, identity);
    ASSERT_TRUE(writer.ok());
    const Bytes bytes = kDial9Example;
    ASSERT_TRUE((*writer)->append_passthrough(storage::PassthroughKind::kDial9, {&bytes, 1}).ok());
    ASSERT_TRUE((*writer)->commit().ok());
    directory = (*writer)->directory();
  }
  std::filesystem::resize_file(directory + "/stream.dial9", 31);
  start();
  const auto session = next_over();
  ASSERT_TRUE(session.has_value());
  EXPECT_EQ(session->state, SessionState::kRecovered);
  EXPECT_EQ(session->process_name, "dial9");
  EXPECT_EQ(session->totals.stored_bytes, 26u);
  EXPECT_EQ(stored(*session).size(), 26u);
}

TEST_F(Dial9FeedTest, RecordingsAreStoredByteForByte) {
  start();
  size_t sent = 0;
  for (const auto& path : reference::files_with(reference::sample_folders("data/dial9"), ".bin")) {
    SCOPED_TRACE(path);
    const std::vector<uint8_t> sample = bytes_of(path.string());
    const auto session = session_of(sample);
    ASSERT_TRUE(session.has_value());
    EXPECT_EQ(session->state, SessionState::kComplete) << session->status;
    EXPECT_TRUE(stored(*session) == sample);
    ++sent;
  }
  EXPECT_GT(sent, 0u);
}

// There is no agent that could come back for it.
TEST_F(Dial9FeedTest, RecoversSessionsOfAKilledCollectorAtStart) {
  start();
  FrameSocket feed = connect();
  ASSERT_TRUE(feed.send_bytes(Bytes(kDial9Example).first(5)));
  const auto live = when_stored(5);
  ASSERT_TRUE(live.has_value());
  const std::filesystem::path as_killed = root_ + "_as_killed";
  std::filesystem::copy(live->directory, as_killed, std::filesystem::copy_options::recursive);
  feed.close();
  ASSERT_TRUE(next_over().has_value());
  stop();
  std::filesystem::remove_all(live->directory);
  std::filesystem::rename(as_killed, live->directory);
  ASSERT_THAT(manifest(*live), HasSubstr("\"recording\""));
  start();
  const auto found = reported_.session([&](const SessionSnapshot& one) {
    return one.name == live->name && one.state == SessionState::kRecovered;
  });
  ASSERT_TRUE(found.has_value());
  EXPECT_THAT(manifest(*found), HasSubstr("\"state\": \"recovered\""));
  EXPECT_EQ(stored(*found).size(), 5u);
}

}  // namespace
}  // namespace collect::ingest
