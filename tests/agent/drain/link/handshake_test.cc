// What the agent sends up to the Welcome, and what it makes of each frame.
#include "agent/drain/link/handshake.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "proto/wire/wire.pb.h"
#include "tests/agent/fake_recorder.h"
#include "tests/fakes/handshake.h"

namespace collect::agent {
namespace {

class HandshakeTest : public testing::Test {
 protected:
  HandshakeTest() {
    fake::reset();
    settings_.role = Role::kConnect;
    identity_.prepare(settings_);
    EXPECT_TRUE(identity_.read_token());
    handshake_.prepare(identity_, streams_, control_, data_);
  }

  // The message that was put into the channel's buffer, which is then empty.
  template <class Message>
  Message sent(Channel& channel) {
    const iovec frame = channel.out.unsent();
    Message message;
    EXPECT_GT(frame.iov_len, sizeof(wire::FrameHeader));
    EXPECT_TRUE(message.ParseFromArray(
        static_cast<const uint8_t*>(frame.iov_base) + sizeof(wire::FrameHeader),
        static_cast<int>(frame.iov_len - sizeof(wire::FrameHeader))));
    channel.out.clear();
    return message;
  }
  HandshakeStep take(Channel& channel, wire::FrameType type, const std::string& body = "") {
    wire::Frame frame{};
    frame.type = type;
    frame.body = Bytes(reinterpret_cast<const uint8_t*>(body.data()), body.size());
    return handshake_.take(channel, frame);
  }
  HandshakeStep welcome(Channel& channel, const wire::Welcome& welcome) {
    return take(channel, wire::FrameType::kWelcome, welcome.SerializeAsString());
  }
  // As the Link does once it is connected.
  wire::Hello greet(Channel& channel) {
    channel.step = ChannelStep::kGreeting;
    EXPECT_EQ(handshake_.send_hello(channel).event, HandshakeEvent::kNone);
    return sent<wire::Hello>(channel);
  }
  HandshakeStep challenge(Channel& channel, const std::string& collector_id = "") {
    wire::Challenge challenge = fakes::challenge_for(greet(channel), "", false);
    challenge.set_collector_id(collector_id);
    return take(channel, wire::FrameType::kChallenge, challenge.SerializeAsString());
  }
  void prove(Channel& channel) {
    EXPECT_EQ(challenge(channel).event, HandshakeEvent::kNone);
    EXPECT_EQ(handshake_.send_proof(channel).event, HandshakeEvent::kNone);
    channel.out.clear();
  }
  wire::Welcome sound_welcome() const {
    wire::Welcome welcome;
    welcome.set_version(wire::kProtocolVersion);
    welcome.set_features(identity_.features());
    return welcome;
  }

  Settings settings_;
  ProcessIdentity identity_;
  StreamTable streams_{};
  Channel control_;
  Channel data_;
  Handshake handshake_;
};

TEST_F(HandshakeTest, ProvesDataWhenControlIsOpen) {
  EXPECT_EQ(challenge(control_).event, HandshakeEvent::kNone);
  EXPECT_FALSE(Handshake::wants_frame(control_));
  EXPECT_EQ(challenge(data_).event, HandshakeEvent::kNone);
  EXPECT_TRUE(handshake_.may_prove(control_));
  EXPECT_FALSE(handshake_.may_prove(data_));

  EXPECT_EQ(handshake_.send_proof(control_).event, HandshakeEvent::kNone);
  EXPECT_TRUE(Handshake::wants_frame(control_));
  EXPECT_FALSE(handshake_.may_prove(control_));
  EXPECT_EQ(welcome(control_, sound_welcome()).event, HandshakeEvent::kWelcomed);
  EXPECT_EQ(control_.step, ChannelStep::kOpen);
  EXPECT_TRUE(handshake_.may_prove(data_));
}

TEST_F(HandshakeTest, KeepsWhatTheWelcomesSay) {
  prove(control_);
  wire::Welcome said = sound_welcome();
  said.set_collector("name\n");
  said.set_heartbeat_ms(kMaxHeartbeatMs + 1);
  EXPECT_EQ(welcome(control_, said).event, HandshakeEvent::kWelcomed);
  EXPECT_STREQ(handshake_.collector(), "name?");
  EXPECT_EQ(handshake_.heartbeat_ms(), kMaxHeartbeatMs);
  EXPECT_EQ(handshake_.features(), 0u);
  prove(data_);
  said.set_resumed(true);
  EXPECT_EQ(welcome(data_, said).event, HandshakeEvent::kWelcomed);
  EXPECT_EQ(handshake_.features(), identity_.features());
  EXPECT_TRUE(handshake_.resumed());
}

TEST_F(HandshakeTest, RefusesFramesOutOfTurn) {
  (void)greet(control_);
  EXPECT_EQ(welcome(control_, sound_welcome()).event, HandshakeEvent::kRefuse);
  EXPECT_EQ(take(control_, wire::FrameType::kAck).event, HandshakeEvent::kRefuse);
  EXPECT_EQ(take(control_, static_cast<wire::FrameType>(999)).event, HandshakeEvent::kNone);
  EXPECT_EQ(take(control_, wire::FrameType::kRefuse).event, HandshakeEvent::kRefused);
  prove(control_);
  EXPECT_EQ(take(control_, wire::FrameType::kChallenge).event, HandshakeEvent::kRefuse);
  EXPECT_EQ(take(control_, wire::FrameType::kResume).event, HandshakeEvent::kRefuse);
  prove(data_);
  EXPECT_EQ(take(data_, wire::FrameType::kResume).event, HandshakeEvent::kNone);
}

TEST_F(HandshakeTest, RefusesAWelcomeOfWhatWasNotOffered) {
  prove(control_);
  wire::Welcome other = sound_welcome();
  other.set_version(wire::kProtocolVersion + 1);
  EXPECT_EQ(welcome(control_, other).code, collect_wire_RefuseCode_REFUSE_VERSION);
  other = sound_welcome();
  other.set_features(uint64_t{1} << 63);
  EXPECT_EQ(welcome(control_, other).code, collect_wire_RefuseCode_REFUSE_VERSION);
  other = sound_welcome();
  other.set_resume_key(std::string(wire::kResumeKeyBytes - 1, 'k'));
  EXPECT_EQ(welcome(control_, other).event, HandshakeEvent::kRefuse);
  prove(data_);
  other.set_resume_key(std::string(wire::kResumeKeyBytes, 'k'));
  EXPECT_EQ(welcome(data_, other).event, HandshakeEvent::kRefuse);
  EXPECT_EQ(control_.step, ChannelStep::kProving);
  EXPECT_EQ(data_.step, ChannelStep::kProving);
}

TEST_F(HandshakeTest, BreaksAPairOfTwoCollectors) {
  const std::string one(wire::kCollectorIdBytes, '1');
  const std::string other(wire::kCollectorIdBytes, '2');
  EXPECT_EQ(challenge(control_, one).event, HandshakeEvent::kNone);
  EXPECT_EQ(challenge(data_, other).event, HandshakeEvent::kBreak);
  EXPECT_EQ(challenge(data_, one).event, HandshakeEvent::kNone);
}

}  // namespace
}  // namespace collect::agent
