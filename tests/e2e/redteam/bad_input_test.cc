// Bad peers against the real daemon: the connection gets a reason and ends, everyone else
// continues, and the session says what happened.
#include <gtest/gtest.h>
#include <signal.h>

#include <nlohmann/json.hpp>

#include "formats/core/bytes.h"
#include "formats/core/crc32.h"
#include "tests/e2e/collector_process.h"
#include "tests/e2e/raw_agent.h"
#include "tests/e2e/recorded_session.h"

namespace collect::e2e {
namespace {

constexpr uint32_t kPid = 4'100'000;  // above the largest that Linux gives out

class BadInput : public testing::Test {
 protected:
  // A well-behaved agent records before, during and after what the test does to the daemon.
  void SetUp() override {
    witness_ = std::make_unique<RawAgent>(collector_.ingest_port(), kPid);
    ASSERT_TRUE(witness_->ready);
    ASSERT_TRUE(witness_->data.send(page_bytes(1, 0, events(1000, 100))));
  }

  void TearDown() override {
    ASSERT_TRUE(witness_->data.send(page_bytes(1, 100, events(2000, 100))));
    wire::StreamClose close;
    close.set_stream_id(1);
    close.set_index_count(200);
    wire::RecordingEnd end;
    end.set_recording(1);
    end.set_reason("exit");
    ASSERT_TRUE(witness_->data.send(wire::FrameType::kStreamClose, close));
    ASSERT_TRUE(witness_->data.send(wire::FrameType::kRecordingEnd, end));
    const std::vector<RecordedSession> sessions = sealed_sessions(collector_.root(), kPid);
    ASSERT_EQ(sessions.size(), 1u);
    EXPECT_EQ(sessions[0].state(), "complete");
    EXPECT_EQ(sessions[0].totals().events, 200u) << "the witness lost something";
  }

  void expect_refused(RawConnection& connection, wire::RefuseCode code) {
    const std::optional<wire::Refuse> refuse = connection.refusal();
    ASSERT_TRUE(refuse) << "closed without a reason";
    EXPECT_EQ(refuse->code(), code) << refuse->reason();
    EXPECT_GT(refuse->reason().size(), 10u) << "a sentence, not a shrug";
    EXPECT_TRUE(connection.is_closed_by_peer());
  }

  Scratch scratch_;
  CollectorProcess collector_{scratch_, {"--resume-ms", "2000"}};
  std::unique_ptr<RawAgent> witness_;
};

TEST_F(BadInput, Garbage) {
  RawConnection stranger(collector_.ingest_port());
  const std::string request = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
  ASSERT_TRUE(stranger.send(Octets(request.begin(), request.end())));
  expect_refused(stranger, wire::REFUSE_PROTOCOL);
}

TEST_F(BadInput, LengthOfFourGigabytes) {
  RawConnection stranger(collector_.ingest_port());
  Octets frame = frame_bytes(wire::FrameType::kHello, "");
  store_le(frame.data() + 8, uint32_t{0xFFFFFFFF});
  store_le(frame.data() + 20, crc32c(Bytes(frame).first(20)));
  ASSERT_TRUE(stranger.send(frame));
  expect_refused(stranger, wire::REFUSE_PROTOCOL);
}

TEST_F(BadInput, HeaderChecksum) {
  RawConnection stranger(collector_.ingest_port());
  Octets frame = frame_bytes(wire::FrameType::kHello, "");
  frame[20] ^= 1;
  ASSERT_TRUE(stranger.send(frame));
  expect_refused(stranger, wire::REFUSE_PROTOCOL);
}

TEST_F(BadInput, HelloThatIsNoMessage) {
  RawConnection stranger(collector_.ingest_port());
  ASSERT_TRUE(stranger.send(frame_bytes(wire::FrameType::kHello, std::string(100, '\xff'))));
  expect_refused(stranger, wire::REFUSE_PROTOCOL);
}

TEST_F(BadInput, WrongVersion) {
  RawConnection stranger(collector_.ingest_port());
  wire::Hello greeting = hello(wire::CHANNEL_CONTROL, kPid + 1, std::string(16, 'v'));
  greeting.set_min_version(7);
  greeting.set_max_version(9);
  ASSERT_TRUE(stranger.send(wire::FrameType::kHello, greeting));
  expect_refused(stranger, wire::REFUSE_VERSION);
}

TEST_F(BadInput, PageBeforeHello) {
  RawConnection stranger(collector_.ingest_port());
  ASSERT_TRUE(stranger.send(page_bytes(1, 0, events(1, 10))));
  expect_refused(stranger, wire::REFUSE_PROTOCOL);
}

TEST_F(BadInput, HalfAHelloAndThenNothing) {
  RawConnection stranger(collector_.ingest_port());
  Octets frame =
      frame_bytes(wire::FrameType::kHello,
                  hello(wire::CHANNEL_CONTROL, kPid + 2, std::string(16, 'h')).SerializeAsString());
  frame.resize(frame.size() / 2);
  ASSERT_TRUE(stranger.send(frame));
  EXPECT_TRUE(stranger.is_closed_by_peer()) << "it may not keep the connection for ever";
}

// Bad pages of an agent that was welcome: what came before is kept, and the session says why it
// ended.
class BadPages : public BadInput {
 protected:
  static constexpr uint32_t kBadPid = kPid + 10;

  void SetUp() override {
    BadInput::SetUp();
    bad_ = std::make_unique<RawAgent>(collector_.ingest_port(), kBadPid);
    ASSERT_TRUE(bad_->ready);
    ASSERT_TRUE(bad_->data.send(page_bytes(1, 0, events(1000, 50))));
  }

  void expect_fifty_kept() {
    const std::vector<RecordedSession> sessions = sealed_sessions(collector_.root(), kBadPid);
    ASSERT_EQ(sessions.size(), 1u);
    EXPECT_EQ(sessions[0].totals().events, 50u);
    EXPECT_EQ(sessions[0].state(), "recovered");
    EXPECT_FALSE(sessions[0].manifest().value("events", nlohmann::json::array()).empty())
        << "the session says nothing of the bad page: " << sessions[0].manifest().dump(1);
    const Ending verified =
        collector_.ctl({"verify", "--allow-incomplete", sessions[0].directory()});
    EXPECT_TRUE(verified.exited_with(0)) << verified.output << verified.errors;
  }

  std::unique_ptr<RawAgent> bad_;
};

TEST_F(BadPages, PageChecksum) {
  ASSERT_TRUE(bad_->data.send(page_bytes(1, 50, events(2000, 10), true)));
  expect_refused(bad_->data, wire::REFUSE_PROTOCOL);
  expect_fifty_kept();
}

TEST_F(BadPages, UnknownStream) {
  ASSERT_TRUE(bad_->data.send(page_bytes(77, 0, events(2000, 10))));
  expect_refused(bad_->data, wire::REFUSE_PROTOCOL);
  expect_fifty_kept();
}

TEST_F(BadPages, TimesThatRunBackwards) {
  ASSERT_TRUE(bad_->data.send(page_bytes(1, 50, events(10, 10))));
  expect_refused(bad_->data, wire::REFUSE_PROTOCOL);
  expect_fifty_kept();
}

// A number that jumps back is a repeat as after a reconnect: skipped, and nothing is stored twice.
TEST_F(BadPages, SequenceNumbersThatJumpBack) {
  ASSERT_TRUE(bad_->data.send(page_bytes(1, 20, events(1020, 30))));
  bad_->data.send(frame_bytes(wire::FrameType::kPage, ""));  // and now something that is no page
  EXPECT_TRUE(bad_->data.is_closed_by_peer());
  const std::vector<RecordedSession> sessions = sealed_sessions(collector_.root(), kBadPid);
  ASSERT_EQ(sessions.size(), 1u);
  EXPECT_EQ(sessions[0].totals().events, 50u);
}

// The agent sends nothing but the beginning of a page for ever; its process is killed at last.
TEST_F(BadPages, PageThatNeverEnds) {
  Octets page = page_bytes(1, 50, events(2000, 1000));
  page.resize(page.size() / 2);
  ASSERT_TRUE(bad_->data.send(page));
  bad_.reset();
  expect_fifty_kept();
}

// With a token asked for, an agent without it is refused, and one that reads it from its file is
// not.
TEST(Token, IsAskedForAndCompared) {
  Scratch scratch;
  write_text_file(scratch / "token", "correct horse battery staple\n");
  write_text_file(scratch / "wrong", "correct horse battery stable\n");
  CollectorProcess collector(scratch, {"--token-file", scratch / "token"});
  for (const std::string& token : {std::string(), std::string("correct horse battery stable")}) {
    RawConnection stranger(collector.ingest_port());
    const auto answer =
        introduce(stranger, hello(wire::CHANNEL_CONTROL, kPid, std::string(16, 't')), {token, ""});
    wire::Refuse refuse;
    ASSERT_TRUE(answer && answer->type == wire::FrameType::kRefuse);
    ASSERT_TRUE(refuse.ParseFromString(answer->body));
    EXPECT_EQ(refuse.code(), wire::REFUSE_TOKEN) << refuse.reason();
    EXPECT_TRUE(stranger.is_closed_by_peer());
  }
  Environment environment = collector.tracing();
  environment["COUNT_FILE"] = scratch / "count";
  environment["COLLECT_TOKEN_FILE"] = scratch / "wrong";
  EXPECT_TRUE(run(scratch.path(), {traced_program("manners")}, environment).exited_with(0));
  EXPECT_TRUE(session_directories(collector.root()).empty()) << "refused, and yet recorded";
  environment["COLLECT_TOKEN_FILE"] = scratch / "token";
  ChildProcess job(scratch.path(), {traced_program("manners")}, environment);
  ASSERT_TRUE(job.wait(seconds(60)).exited_with(0));
  const std::vector<RecordedSession> sessions = sealed_sessions(collector.root(), job.pid());
  ASSERT_EQ(sessions.size(), 1u);
  expect_exactly(sessions[0], read_count(scratch / "count", job.pid()));
  EXPECT_EQ(collector.process().errors().find("battery"), std::string::npos)
      << "a token is in the log";
}

// A hundred strangers that connect and say nothing, while the witness continues.
TEST_F(BadInput, ManySilentConnections) {
  std::vector<std::unique_ptr<RawConnection>> silent;
  for (int i = 0; i < 100; ++i) {
    silent.push_back(std::make_unique<RawConnection>(collector_.ingest_port()));
  }
  RawAgent late(collector_.ingest_port(), kPid + 3);
  EXPECT_TRUE(late.ready);
}

}  // namespace
}  // namespace collect::e2e
