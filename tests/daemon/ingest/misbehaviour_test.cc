// What unknown peers and broken agents get: a reason and the end of their connection. Everybody
// else continues, and the session says what happened.
#include <gmock/gmock.h>

#include <cstring>

#include "formats/core/crc32.h"
#include "storage/fs/clock.h"
#include "tests/daemon/ingest/ingest_fixture.h"
#include "tests/fakes/handshake.h"

namespace collect::ingest {
namespace {

using fakes::FakeAgent;
using fakes::FakeProcess;
using fakes::FrameSocket;
using fakes::index_events;
using fakes::index_page_header;
using testing::HasSubstr;

// A second of it takes 20 ms: the manifest that says what happened is due at once.
class QuickClock final : public storage::Clock {
 public:
  uint64_t unix_ns() override { return storage::system_clock().unix_ns(); }
  uint64_t monotonic_ns() override { return 50 * storage::system_clock().monotonic_ns(); }
};

class MisbehaviourTest : public IngestTest {
 protected:
  MisbehaviourTest() { options_.storage.clock = &clock_; }
  ~MisbehaviourTest() override { ingest_.reset(); }  // uses the clock

  // What the collector says to a connection that begins with these bytes.
  wire::Refuse refusal_of(Bytes bytes) {
    FrameSocket socket = FrameSocket::connect(address());
    EXPECT_TRUE(socket.send_bytes(bytes));
    const auto frame = socket.receive_type(wire::FrameType::kRefuse);
    EXPECT_TRUE(frame.has_value());
    EXPECT_TRUE(socket.ends());
    return frame ? frame->parsed<wire::Refuse>() : wire::Refuse();
  }
  wire::Refuse refusal_of(const wire::Hello& hello) {
    return refusal_of(fakes::frame_bytes(wire::FrameType::kHello, hello));
  }

  // An agent in mid-recording that sends `bytes` on data; what it receives.
  void expect_refused(Bytes bytes, const std::string& reason, bool retry = true) {
    FakeProcess process;
    process.id_byte = 66;
    process.name = "bad";
    FakeAgent bad(process);
    ASSERT_TRUE(bad.connect(address()));
    ASSERT_TRUE(bad.start_recording(1));
    ASSERT_TRUE(bad.open_stream(1, 11));
    ASSERT_TRUE(bad.send_events(1, 0, 100));
    ASSERT_TRUE(bad.wait_stored(1, 100));
    (void)bad.data().send_bytes(bytes);
    ASSERT_TRUE(bad.wait_refused());
    EXPECT_THAT(bad.refused()->reason(), HasSubstr(reason));
    EXPECT_EQ(bad.refused()->code(), wire::REFUSE_PROTOCOL);
    EXPECT_EQ(bad.refused()->retry(), retry);
    EXPECT_TRUE(bad.wait_control_end());
    EXPECT_TRUE(bad.data().ends());
    const auto session = reported_.session(
        [](const auto& s) { return s.process_name == "bad" && s.state != SessionState::kActive; });
    ASSERT_TRUE(session.has_value());
    EXPECT_EQ(session->totals.events, 100u);
    EXPECT_TRUE(eventually([&] { return manifest(*session).find(reason) != std::string::npos; }))
        << manifest(*session);
  }

  QuickClock clock_;
};

TEST_F(MisbehaviourTest, GarbageIsRefusedAfterFourBytes) {
  start();
  const std::string text = "GET ";
  const auto refusal =
      refusal_of(Bytes(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
  EXPECT_EQ(refusal.code(), wire::REFUSE_PROTOCOL);
  EXPECT_THAT(refusal.reason(), HasSubstr("magic"));
  EXPECT_TRUE(eventually([this] { return ingest_->counters().connections_refused == 1; }));
}

TEST_F(MisbehaviourTest, RefusesALengthOf4GiB) {
  start();
  wire::FrameHeader header{};
  header.magic = wire::kFrameMagic;
  header.type = static_cast<uint16_t>(wire::FrameType::kHello);
  header.body_bytes = UINT32_MAX;
  uint8_t bytes[sizeof header];
  std::memcpy(bytes, &header, sizeof header);
  header.header_crc32c = crc32c(Bytes(bytes, offsetof(wire::FrameHeader, header_crc32c)));
  std::memcpy(bytes, &header, sizeof header);
  EXPECT_THAT(refusal_of(Bytes(bytes, sizeof bytes)).reason(), HasSubstr("longer"));
  expect_refused(Bytes(bytes, sizeof bytes), "longer");
}

TEST_F(MisbehaviourTest, WrongVersionIsRefusedForGood) {
  start();
  wire::Hello hello = FakeAgent().hello(wire::CHANNEL_CONTROL);
  hello.set_min_version(wire::kProtocolVersion + 1);
  hello.set_max_version(9);
  const auto refusal = refusal_of(hello);
  EXPECT_EQ(refusal.code(), wire::REFUSE_VERSION);
  EXPECT_FALSE(refusal.retry());
  EXPECT_THAT(refusal.reason(), HasSubstr("version " + std::to_string(wire::kProtocolVersion)));
}

TEST_F(MisbehaviourTest, TokenIsAskedFor) {
  options_.token = "secret";
  start();
  FakeProcess process;
  for (const char* token : {"", "secreT", "secret and more"}) {
    process.token = token;
    FakeAgent bad(process);
    EXPECT_FALSE(bad.connect(address()));
    ASSERT_TRUE(bad.refused().has_value());
    EXPECT_EQ(bad.refused()->code(), wire::REFUSE_TOKEN);
  }
  process.token = "secret";
  FakeAgent good(process);
  EXPECT_TRUE(good.connect(address()));
  ASSERT_TRUE(ingest_->set_access("another", nullptr).ok());
  EXPECT_FALSE(good.connect(address()));
  ASSERT_TRUE(good.refused().has_value());
  EXPECT_EQ(good.refused()->code(), wire::REFUSE_TOKEN);
}

TEST_F(MisbehaviourTest, HellosThatSayNothingAreRefused) {
  start();
  wire::Hello hello = FakeAgent().hello(wire::CHANNEL_CONTROL);
  hello.set_process_id("short");
  EXPECT_THAT(refusal_of(hello).reason(), HasSubstr("process id"));
  hello = FakeAgent().hello(wire::CHANNEL_CONTROL);
  hello.set_nonce("short");
  EXPECT_THAT(refusal_of(hello).reason(), HasSubstr("nonce"));
  hello = FakeAgent().hello(wire::CHANNEL_UNSPECIFIED);
  EXPECT_THAT(refusal_of(hello).reason(), HasSubstr("channel"));
  hello = FakeAgent().hello(wire::CHANNEL_DATA);
  hello.set_atf_version(3);
  EXPECT_THAT(refusal_of(hello).reason(), HasSubstr("ATF version 3"));
  hello.set_atf_version(2);
  hello.set_os(static_cast<wire::Os>(77));
  EXPECT_THAT(refusal_of(hello).reason(), HasSubstr("unknown"));
  EXPECT_THAT(
      refusal_of(fakes::frame_bytes(wire::FrameType::kHeartbeat, wire::Heartbeat())).reason(),
      HasSubstr("no hello"));
}

TEST_F(MisbehaviourTest, EveryPrefixOfAHelloIsLetGo) {
  start();
  const auto whole =
      fakes::frame_bytes(wire::FrameType::kHello, FakeAgent().hello(wire::CHANNEL_CONTROL));
  for (size_t length = 0; length < whole.size(); ++length) {
    FrameSocket socket = FrameSocket::connect(address());
    ASSERT_TRUE(socket.send_bytes(Bytes(whole).first(length)));
    if (length % 2 == 0) {
      socket.reset();
    } else {
      socket.close();
    }
  }
  FakeAgent agent;
  ASSERT_TRUE(agent.connect(address()));
  record_all(agent, 1, 1, 10);
}

TEST_F(MisbehaviourTest, EveryFlippedByteOfAHelloIsRefused) {
  start();
  const auto whole =
      fakes::frame_bytes(wire::FrameType::kHello, FakeAgent().hello(wire::CHANNEL_CONTROL));
  for (size_t at = 0; at < whole.size(); ++at) {
    auto flipped = whole;
    flipped[at] ^= 0x40;
    EXPECT_EQ(refusal_of(flipped).code(), wire::REFUSE_PROTOCOL) << "byte " << at;
  }
}

TEST_F(MisbehaviourTest, PageWithABadChecksum) {
  start();
  auto page = fakes::page_frame_bytes(index_page_header(1, 100, 10), index_events(100, 10));
  page.back() ^= 1;
  expect_refused(page, "page checksum is wrong");
  EXPECT_EQ(ingest_->counters().pages_bad_checksum, 1u);
}

TEST_F(MisbehaviourTest, NumbersThatJumpBack) {
  start();
  expect_refused(fakes::page_frame_bytes(index_page_header(1, 50, 10), index_events(50, 10)),
                 "jumps back from record 100 to 50");
}

TEST_F(MisbehaviourTest, PageOfAnUnknownStream) {
  start();
  expect_refused(fakes::page_frame_bytes(index_page_header(9, 0, 10), index_events(0, 10)),
                 "stream 9, which is not open");
}

TEST_F(MisbehaviourTest, FrameOfTheOtherChannel) {
  start();
  expect_refused(fakes::frame_bytes(wire::FrameType::kBye, wire::Bye()),
                 "does not belong on the data channel");
}

TEST_F(MisbehaviourTest, BodyThatIsNoMessage) {
  start();
  const std::vector<uint8_t> body(7, 0xFF);
  expect_refused(fakes::frame_bytes(wire::FrameType::kStreamOpen, Bytes(body)),
                 "no collect.wire.StreamOpen");
}

TEST_F(MisbehaviourTest, TooManyModulesInAFrame) {
  start();
  wire::Modules modules;
  for (uint32_t id = 0; id <= wire::kMaxModulesPerFrame; ++id)
    modules.add_modules()->set_module_id(id);
  expect_refused(fakes::frame_bytes(wire::FrameType::kModules, modules), "more than 16 modules");
}

TEST_F(MisbehaviourTest, StreamCloseThatTakesRecordsBack) {
  start();
  wire::StreamClose close;
  close.set_stream_id(1);
  close.set_index_count(99);
  expect_refused(fakes::frame_bytes(wire::FrameType::kStreamClose, close), "fewer records");
}

// Records that are none are the agent's own fault and would come again and again: no retry, and
// the session is sealed with what was good.
// Frames behind a refused page are not looked at.
TEST_F(MisbehaviourTest, FrameBehindARefusedPage) {
  start();
  std::vector<uint8_t> bytes =
      fakes::page_frame_bytes(fakes::index_page_header(77, 0, 10), fakes::index_events(0, 10));
  wire::RecordingEnd end;
  end.set_recording(1);
  const std::vector<uint8_t> behind = fakes::frame_bytes(wire::FrameType::kRecordingEnd, end);
  bytes.insert(bytes.end(), behind.begin(), behind.end());
  expect_refused(bytes, "stream 77");
}

TEST_F(MisbehaviourTest, RecordsThatAreNone) {
  start();
  auto events = index_events(100, 10);
  events[3 * 32 + 24] = 99;  // the kind of the fourth event
  FakeAgent bad;
  ASSERT_TRUE(bad.connect(address()));
  ASSERT_TRUE(bad.start_recording(1));
  ASSERT_TRUE(bad.open_stream(1, 11));
  ASSERT_TRUE(bad.send_events(1, 0, 100));
  ASSERT_TRUE(bad.data().send_page(index_page_header(1, 100, 10), events));
  ASSERT_TRUE(bad.wait_refused());
  EXPECT_FALSE(bad.refused()->retry());
  const auto session = reported_.session_in(SessionState::kRecovered);
  ASSERT_TRUE(session.has_value());
  EXPECT_EQ(stored_events(*session, 0, 100), index_events(0, 100));
}

TEST_F(MisbehaviourTest, OthersGoOnWhileOneMisbehaves) {
  start();
  FakeAgent good;
  ASSERT_TRUE(good.connect(address()));
  ASSERT_TRUE(good.start_recording(1));
  ASSERT_TRUE(good.open_stream(1, 11));
  ASSERT_TRUE(good.send_events(1, 0, 1000));
  expect_refused(fakes::page_frame_bytes(index_page_header(9, 0, 10), index_events(0, 10)),
                 "stream 9, which is not open");
  ASSERT_TRUE(good.send_events(1, 1000, 1000));
  ASSERT_TRUE(good.close_stream(1, 2000));
  ASSERT_TRUE(good.end_recording());
  ASSERT_TRUE(good.wait_recording_ended(1));
  const auto session = reported_.session_in(SessionState::kComplete);
  ASSERT_TRUE(session.has_value());
  EXPECT_EQ(stored_events(*session, 0, 2000), index_events(0, 2000));
}

TEST_F(MisbehaviourTest, ThreadsBeyondTheLimitAreRefused) {
  options_.threads_per_agent = 3;
  start();
  FakeAgent agent;
  ASSERT_TRUE(agent.connect(address()));
  ASSERT_TRUE(agent.start_recording(1));
  for (uint32_t stream = 1; stream <= 4; ++stream) ASSERT_TRUE(agent.open_stream(stream, stream));
  ASSERT_TRUE(agent.wait_refused());
  EXPECT_EQ(agent.refused()->code(), wire::REFUSE_LIMIT);
}

TEST_F(MisbehaviourTest, RecordingsBeyondTheLimitAreRefused) {
  options_.sessions_per_agent = 2;
  start();
  FakeAgent agent;
  ASSERT_TRUE(agent.connect(address()));
  for (uint32_t recording = 1; recording <= 2; ++recording) {
    ASSERT_TRUE(agent.start_recording(recording));
    ASSERT_TRUE(agent.end_recording());
    ASSERT_TRUE(agent.wait_recording_ended(recording));
  }
  ASSERT_TRUE(agent.start_recording(3));
  ASSERT_TRUE(agent.wait_refused());
  EXPECT_EQ(agent.refused()->code(), wire::REFUSE_LIMIT);
  EXPECT_FALSE(agent.refused()->retry());
  EXPECT_THAT(agent.refused()->reason(), HasSubstr("sessions_per_agent"));
}

TEST_F(MisbehaviourTest, ConnectionsBeyondTheLimitAreRefused) {
  options_.max_connections = 2;
  start();
  FakeAgent agent;
  ASSERT_TRUE(agent.connect(address()));
  FrameSocket third = FrameSocket::connect(address());
  const auto frame = third.receive_type(wire::FrameType::kRefuse);
  ASSERT_TRUE(frame.has_value());
  EXPECT_EQ(frame->parsed<wire::Refuse>().code(), wire::REFUSE_LIMIT);
  agent.disconnect();
  EXPECT_TRUE(eventually([&] { return agent.connect(address()); }));  // there is room again
}

TEST_F(MisbehaviourTest, AgentThatFallsSilentIsTakenForDead) {
  options_.heartbeat = milliseconds{50};
  start();
  fakes::Secrets secrets;
  const auto introduce = [&](FrameSocket& socket, wire::Channel channel) {
    const wire::Hello hello = FakeAgent().hello(channel);
    socket.send(wire::FrameType::kHello, hello);
    const auto challenge = socket.receive_type(wire::FrameType::kChallenge);
    ASSERT_TRUE(challenge.has_value());
    socket.send(wire::FrameType::kProof,
                proof_for(hello, challenge->parsed<wire::Challenge>(), secrets, false));
    const auto welcome = socket.receive_type(wire::FrameType::kWelcome);
    ASSERT_TRUE(welcome.has_value());
    secrets.resume_key = welcome->parsed<wire::Welcome>().resume_key();
  };
  FrameSocket control = FrameSocket::connect(address());
  introduce(control, wire::CHANNEL_CONTROL);
  FrameSocket data = FrameSocket::connect(address());
  introduce(data, wire::CHANNEL_DATA);
  EXPECT_TRUE(control.receive_type(wire::FrameType::kHeartbeat).has_value());
  EXPECT_TRUE(data.ends());
  EXPECT_TRUE(reported_.agent([](const auto& agent) {
    return agent.state == AgentState::kDisconnected &&
           agent.status.find("nothing was received") != std::string::npos;
  }));
}

}  // namespace
}  // namespace collect::ingest
