// Who a connection is: the resume key decides, its owner too, and never the process id alone.
#include <filesystem>
#include <fstream>

#include "daemon/ingest/link/handshake.h"
#include "storage/model/resume_key.h"
#include "tests/daemon/ingest/ingest_fixture.h"
#include "tests/fakes/handshake.h"

namespace collect::ingest {
namespace {

using fakes::FakeAgent;
using fakes::FrameSocket;
using principal::Principal;

// ---- pure functions

CheckedHello checked_with(const std::string& key) {
  CheckedHello checked;
  checked.hello = FakeAgent().hello(wire::CHANNEL_CONTROL);
  checked.context = *begin_proofs(checked.hello, false);
  wire::Challenge challenge;
  challenge.set_nonce(checked.context.collector_nonce, sizeof checked.context.collector_nonce);
  checked.resume_proof =
      fakes::proof_for(checked.hello, challenge, {"", key}, false).resume_proof();
  return checked;
}

std::string text_of(const storage::ResumeKey& key) {
  return {key.bytes.begin(), key.bytes.end()};
}

TEST(IdentityTest, DrawsNewKeysAndNonces) {
  const auto one = make_resume_key(Principal{});
  const auto two = make_resume_key(Principal{});
  ASSERT_TRUE(one && two);
  EXPECT_NE(one->bytes, two->bytes);
  EXPECT_NE(one->bytes, storage::ResumeKey{}.bytes);
  const wire::Hello hello = FakeAgent().hello(wire::CHANNEL_DATA);
  const auto first = begin_proofs(hello, true);
  const auto second = begin_proofs(hello, true);
  ASSERT_TRUE(first && second);
  EXPECT_NE(challenge_for(*first, "", {}).nonce(), challenge_for(*second, "", {}).nonce());
  EXPECT_TRUE(challenge_for(*first, "", {}).token_proof().empty());
  EXPECT_EQ(challenge_for(*first, "", {}).collector_id(), "");
  storage::CollectorIdentity collector;
  collector.id.fill('x');
  EXPECT_EQ(challenge_for(*first, "", collector).collector_id(), std::string(16, 'x'));
  EXPECT_TRUE(fakes::collector_knows("t", hello, challenge_for(*first, "t", {}), true));
}

TEST(IdentityTest, OnlyTheRightKeyHolds) {
  const auto key = make_resume_key(Principal{});
  ASSERT_TRUE(key.has_value());
  EXPECT_FALSE(check_resume(*key, checked_with(text_of(*key)), Principal{}));
  for (const std::string& wrong : {std::string(), std::string(16, '\0'), text_of(*key) + "x"}) {
    const auto refusal = check_resume(*key, checked_with(wrong), Principal{});
    ASSERT_TRUE(refusal.has_value());
    EXPECT_EQ(refusal->code, wire::REFUSE_RESUME);
    EXPECT_FALSE(refusal->retry);
  }
  CheckedHello cut = checked_with(text_of(*key));
  cut.resume_proof.resize(31);
  EXPECT_TRUE(check_resume(*key, cut, Principal{}));
}

// The right key from another user, or with another certificate, is a stolen one. Addresses change,
// and what is not known can't be compared.
TEST(IdentityTest, KeyIsBoundToUserAndCertificate) {
  const Principal user = Principal::of_uid(1000);
  const Principal other = Principal::of_uid(1001);
  const Principal certificate{Principal::Kind::kCertificate, "00ff"};
  const Principal same_words{Principal::Kind::kCertificate, "1000"};
  const Principal address{Principal::Kind::kAddress, "192.0.2.1"};
  const Principal moved{Principal::Kind::kAddress, "192.0.2.2"};
  const Principal unknown{};
  const auto holds = [](const Principal& given, const Principal& shown) {
    const auto key = make_resume_key(given);
    return !check_resume(*key, checked_with(text_of(*key)), shown).has_value();
  };
  EXPECT_TRUE(holds(user, user));
  EXPECT_TRUE(holds(certificate, certificate));
  EXPECT_TRUE(holds(address, moved));
  EXPECT_TRUE(holds(unknown, unknown));
  EXPECT_TRUE(holds(unknown, user));
  for (const Principal& shown : {other, certificate, same_words, address, unknown}) {
    EXPECT_FALSE(holds(user, shown)) << static_cast<int>(shown.kind);
  }
  for (const Principal& shown : {user, same_words, address, unknown}) {
    EXPECT_FALSE(holds(certificate, shown)) << static_cast<int>(shown.kind);
  }
}

// ---- a running collector

class ResumeTest : public IngestTest {
 protected:
  int refused(FakeAgent& agent) {
    if (agent.connect(address())) return 0;
    return agent.refused() ? agent.refused()->code() : -1;
  }
};

TEST_F(ResumeTest, KnownProcessIsNotReplacedWithoutItsKey) {
  start();
  FakeAgent agent;
  ASSERT_TRUE(agent.connect(address()));
  ASSERT_EQ(agent.resume_key().size(), 16u);
  ASSERT_TRUE(agent.start_recording(1));
  ASSERT_TRUE(agent.open_stream(1, 11));
  ASSERT_TRUE(agent.send_events(1, 0, 100));
  ASSERT_TRUE(agent.wait_stored(1, 100));
  FakeAgent thief;  // the same process id
  for (const std::string& key : {std::string(), std::string(16, 'k')}) {
    thief.resume_key() = key;
    EXPECT_EQ(refused(thief), wire::REFUSE_RESUME);
  }
  FrameSocket data = FrameSocket::connect(address());
  EXPECT_FALSE(thief.open_data(std::move(data)));
  EXPECT_EQ(thief.refused()->code(), wire::REFUSE_RESUME);
  ASSERT_TRUE(agent.send_events(1, 100, 100));
  ASSERT_TRUE(agent.wait_stored(1, 200)) << "the process was replaced";
  agent.disconnect();
  EXPECT_EQ(refused(thief), wire::REFUSE_RESUME) << "while it is away";
  const std::string key = agent.resume_key();
  ASSERT_TRUE(agent.connect(address()));
  EXPECT_EQ(agent.resume_key(), key) << "a known process is given no other key";
  EXPECT_EQ(agent.resumed().at(1).index_next(), 200u);
  ASSERT_TRUE(agent.start_recording(1));
  ASSERT_TRUE(agent.open_stream(1, 11));
  ASSERT_TRUE(agent.close_stream(1, 200));
  ASSERT_TRUE(agent.end_recording());
  ASSERT_TRUE(agent.wait_recording_ended(1));
  EXPECT_EQ(reported_.session_count(), 1u);
}

TEST_F(ResumeTest, DataAloneOfANewProcessIsRefused) {
  start();
  FakeAgent agent;
  EXPECT_FALSE(agent.open_data(FrameSocket::connect(address())));
  ASSERT_TRUE(agent.refused().has_value());
  EXPECT_EQ(agent.refused()->code(), wire::REFUSE_PROTOCOL);
  EXPECT_TRUE(agent.refused()->retry());
  EXPECT_EQ(ingest_->counters().connections_refused, 1u);
  EXPECT_TRUE(agent.connect(address()));
}

TEST_F(ResumeTest, KeyIsGivenOnControlAndOnce) {
  start();
  FakeAgent agent;
  ASSERT_TRUE(agent.connect(address()));
  EXPECT_TRUE(agent.welcome().resume_key().empty()) << "on data";
  // Both recordings of one process have one key.
  record_all(agent, 1, 1, 10);
  ASSERT_TRUE(agent.start_recording(2));
  ASSERT_TRUE(agent.open_stream(2, 12));
  ASSERT_TRUE(agent.send_events(2, 0, 10));
  ASSERT_TRUE(agent.wait_stored(2, 10));
  const auto active = reported_.session_in(SessionState::kActive);
  ASSERT_TRUE(active.has_value());
  const auto key = storage::read_resume_key(posix_, active->directory);
  ASSERT_TRUE(key.ok());
  EXPECT_EQ(text_of(*key), agent.resume_key());
}

// What is behind the proof in the same bytes is the first that is read of the channel.
TEST_F(ResumeTest, FramesBehindTheProofAreNotLost) {
  start();
  FrameSocket control = FrameSocket::connect(address());
  const wire::Hello hello = FakeAgent().hello(wire::CHANNEL_CONTROL);
  ASSERT_TRUE(control.send(wire::FrameType::kHello, hello));
  const auto challenge = control.receive_type(wire::FrameType::kChallenge);
  ASSERT_TRUE(challenge.has_value());
  const wire::Proof proof =
      fakes::proof_for(hello, challenge->parsed<wire::Challenge>(), {"", ""}, false);
  std::vector<uint8_t> bytes = fakes::frame_bytes(wire::FrameType::kProof, proof);
  for (const uint64_t spooled : {76, 77}) {
    wire::Heartbeat beat;
    beat.set_spooled_bytes(spooled);
    const auto frame = fakes::frame_bytes(wire::FrameType::kHeartbeat, beat);
    bytes.insert(bytes.end(), frame.begin(), frame.end());
  }
  ASSERT_TRUE(control.send_bytes(bytes));
  EXPECT_TRUE(control.receive_type(wire::FrameType::kWelcome).has_value());
  EXPECT_TRUE(reported_.agent([](const auto& one) { return one.spooled_bytes == 77; }));
}

TEST_F(ResumeTest, MessagesThatAreNoneAreRefused) {
  start();
  const std::vector<uint8_t> noise(9, 0xFF);
  FrameSocket first = FrameSocket::connect(address());
  ASSERT_TRUE(first.send_bytes(fakes::frame_bytes(wire::FrameType::kHello, Bytes(noise))));
  const auto no_hello = first.receive_type(wire::FrameType::kRefuse);
  ASSERT_TRUE(no_hello.has_value());
  EXPECT_NE(no_hello->parsed<wire::Refuse>().reason().find("no collect.wire.Hello"),
            std::string::npos);
  EXPECT_TRUE(no_hello->parsed<wire::Refuse>().retry());
  FrameSocket second = FrameSocket::connect(address());
  ASSERT_TRUE(second.send(wire::FrameType::kHello, FakeAgent().hello(wire::CHANNEL_CONTROL)));
  ASSERT_TRUE(second.receive_type(wire::FrameType::kChallenge).has_value());
  ASSERT_TRUE(second.send_bytes(fakes::frame_bytes(wire::FrameType::kProof, Bytes(noise))));
  const auto no_proof = second.receive_type(wire::FrameType::kRefuse);
  ASSERT_TRUE(no_proof.has_value());
  EXPECT_NE(no_proof->parsed<wire::Refuse>().reason().find("no collect.wire.Proof"),
            std::string::npos);
}

TEST_F(ResumeTest, TwoProcessesHaveTwoKeys) {
  start();
  FakeAgent one;
  fakes::FakeProcess process;
  process.id_byte = 2;
  FakeAgent two(process);
  ASSERT_TRUE(one.connect(address()));
  ASSERT_TRUE(two.connect(address()));
  EXPECT_NE(one.resume_key(), two.resume_key());
  FakeAgent thief;
  thief.resume_key() = two.resume_key();
  EXPECT_EQ(refused(thief), wire::REFUSE_RESUME);
}

TEST_F(ResumeTest, RefusesAgentsThatDoNotAnswerTheChallenge) {
  start();
  FrameSocket socket = FrameSocket::connect(address());
  ASSERT_TRUE(socket.send(wire::FrameType::kHello, FakeAgent().hello(wire::CHANNEL_CONTROL)));
  ASSERT_TRUE(socket.receive_type(wire::FrameType::kChallenge).has_value());
  ASSERT_TRUE(socket.send(wire::FrameType::kHeartbeat, wire::Heartbeat()));
  const auto refuse = socket.receive_type(wire::FrameType::kRefuse);
  ASSERT_TRUE(refuse.has_value());
  EXPECT_EQ(refuse->parsed<wire::Refuse>().code(), wire::REFUSE_PROTOCOL);
}

}  // namespace
}  // namespace collect::ingest
