// Who the agent says it is, the token that it reads, and what it makes of a Challenge.
#include "agent/drain/link/hello.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>

#include "agent/drain/link/frames.h"
#include "proto/wire/codec_rules.h"
#include "proto/wire/wire.pb.h"
#include "tests/agent/fake_recorder.h"
#include "tests/agent/temp_folder.h"
#include "tests/fakes/handshake.h"

namespace collect::agent {
namespace {

class HelloTest : public testing::Test {
 protected:
  HelloTest() {
    fake::reset();
    const std::string path = folder_.path() / "token";
    std::memcpy(settings_.token_file, path.c_str(), path.size() + 1);
    settings_.role = Role::kConnect;
  }
  // Whether a token file of this content holds a token.
  bool reads(const std::string& content) {
    std::ofstream(settings_.token_file, std::ios::binary | std::ios::trunc) << content;
    return identity_.read_token();
  }
  void without_token() {
    settings_.token_file[0] = '\0';
    EXPECT_TRUE(identity_.read_token());
  }
  // As it goes over the wire.
  wire::Hello hello(bool data) {
    uint8_t bytes[sizeof(wire::FrameHeader) + collect_wire_Hello_size];
    nonces_.agent[0] = data ? 4 : 2;
    const size_t size = encode_frame(bytes, wire::FrameType::kHello, collect_wire_Hello_fields,
                                     &identity_.hello(data, nonces_.agent));
    wire::Hello sent;
    EXPECT_TRUE(sent.ParseFromArray(bytes + sizeof(wire::FrameHeader),
                                    static_cast<int>(size - sizeof(wire::FrameHeader))));
    return sent;
  }
  // What the agent says of it; "": it holds.
  std::string judge(bool data, const wire::Challenge& challenge) {
    const std::string body = challenge.SerializeAsString();
    const char* const fault = identity_.judge_challenge(
        data, nonces_, Bytes(reinterpret_cast<const uint8_t*>(body.data()), body.size()), code_);
    return fault == nullptr ? "" : fault;
  }
  wire::Proof prove(bool data) {
    collect_wire_Proof proof;
    identity_.prove(data, nonces_, proof);
    wire::Proof sent;
    sent.set_token_proof(proof.token_proof.bytes, proof.token_proof.size);
    sent.set_resume_proof(proof.resume_proof.bytes, proof.resume_proof.size);
    return sent;
  }
  // The token that the proof is of, held against the proof of the page alone.
  void expect_token(const std::string& token) {
    EXPECT_EQ(identity_.has_token(), !token.empty());
    const wire::Hello said = hello(false);
    const wire::Challenge challenge = fakes::challenge_for(said, token, false);
    EXPECT_EQ(judge(false, challenge), "");
    EXPECT_EQ(prove(false).token_proof(),
              fakes::proof_for(said, challenge, {token, ""}, false).token_proof());
  }

  TempFolder folder_;
  Settings settings_;
  ProcessIdentity identity_;
  Nonces nonces_;
  collect_wire_RefuseCode code_ = collect_wire_RefuseCode_REFUSE_LIMIT;
};

TEST_F(HelloTest, SaysWhatTheSettingsAndTheSystemSay) {
  std::memcpy(settings_.tag, "a \xff tag", 8);
  settings_.atf_version = 1;
  identity_.prepare(settings_);
  wire::Hello said = hello(false);
  EXPECT_EQ(said.channel(), wire::CHANNEL_CONTROL);
  EXPECT_EQ(said.min_version(), wire::kProtocolVersion);
  EXPECT_EQ(said.max_version(), wire::kProtocolVersion);
  EXPECT_EQ(said.features(), wire::kFeatureColumns | wire::kFeatureTuples);
  EXPECT_EQ(identity_.features(), said.features());
  EXPECT_EQ(said.process_id().size(), 16u);
  EXPECT_EQ(said.nonce(), std::string(1, 2) + std::string(15, 0));
  EXPECT_EQ(said.pid(), static_cast<uint32_t>(getpid()));
  EXPECT_EQ(said.parent_pid(), static_cast<uint32_t>(getppid()));
  EXPECT_EQ(said.tag(), "a ? tag");
  EXPECT_EQ(said.agent_version(), "0.1.0");
  EXPECT_EQ(said.clock_type(), 3u);
  EXPECT_EQ(said.atf_version(), 1u);
  EXPECT_EQ(said.page_bytes(), 65536u);
  EXPECT_EQ(said.buffer_bytes(), 64u << 20);
  EXPECT_EQ(said.recording(), 0u);
  EXPECT_FALSE(said.is_recording());
  EXPECT_EQ(said.detail(), wire::DETAIL_OFF);
#if defined(__x86_64__)
  EXPECT_EQ(said.arch(), wire::ARCH_X86_64);
#else
  EXPECT_EQ(said.arch(), wire::ARCH_ARM64);
#endif
  (void)start_recording();
  (void)set_detail(2, 0, nullptr);
  said = hello(true);
  EXPECT_EQ(said.channel(), wire::CHANNEL_DATA);
  EXPECT_EQ(said.nonce(), std::string(1, 4) + std::string(15, 0));
  EXPECT_EQ(said.recording(), 1u);
  EXPECT_TRUE(said.is_recording());
  EXPECT_EQ(said.detail(), wire::DETAIL_ON);
}

TEST_F(HelloTest, FilterIsAskedForWhereThereIsOne) {
  settings_.except[0] = 'x';
  identity_.prepare(settings_);
  EXPECT_EQ(hello(false).features(), wire::kCodecFeatures | wire::kFeatureStartFilter);
  settings_.except[0] = '\0';
  settings_.only[0] = 'x';
  identity_.prepare(settings_);
  EXPECT_NE(hello(false).features() & wire::kFeatureStartFilter, 0u);
}

TEST_F(HelloTest, EveryProcessAndEveryConnectionHasItsOwnNumber) {
  identity_.prepare(settings_);
  without_token();
  const std::string first = hello(false).process_id();
  EXPECT_EQ(hello(true).process_id(), first);
  uint64_t seed = 0;
  std::memcpy(&seed, first.data(), sizeof seed);
  EXPECT_EQ(identity_.seed(), seed);
  identity_.become_another();
  const std::string second = hello(false).process_id();
  EXPECT_NE(second, first);
  identity_.prepare(settings_);
  EXPECT_NE(hello(false).process_id(), second);
  uint8_t nonce[wire::kNonceBytes] = {};
  uint8_t other[wire::kNonceBytes] = {};
  EXPECT_TRUE(identity_.draw_nonce(nonce));
  EXPECT_TRUE(identity_.draw_nonce(other));
  EXPECT_NE(std::memcmp(nonce, other, sizeof nonce), 0);
}

TEST_F(HelloTest, TrimsWhiteSpaceAroundTheToken) {
  identity_.prepare(settings_);
  EXPECT_FALSE(identity_.has_token());
  const std::string longest(256, 't');
  for (const auto& [content, token] :
       {std::pair<std::string, std::string>{"secret", "secret"},
        {"x", "x"},
        {" \t\r\nsecret token\n\r\t ", "secret token"},
        {"a\x0b", "a\x0b"},
        {longest, longest},
        {longest + "\r\n", longest},
        {std::string(300, '\n') + longest + std::string(300, ' '), longest}}) {
    ASSERT_TRUE(reads(content)) << content.size();
    expect_token(token);
  }
}

TEST_F(HelloTest, RejectsInvalidTokens) {
  identity_.prepare(settings_);
  ASSERT_TRUE(reads("secret"));
  EXPECT_TRUE(identity_.has_token());
  for (const std::string& content :
       {std::string(), std::string(" \n"), std::string(257, 't'), " " + std::string(257, 't'),
        "\n\n\n" + std::string(257, 't'), std::string(5000, 't'), std::string(5000, ' ') + "t"}) {
    EXPECT_FALSE(reads(content)) << content.size();
    EXPECT_FALSE(identity_.has_token()) << "the one before holds no longer";
  }
  ASSERT_EQ(unlink(settings_.token_file), 0);
  EXPECT_FALSE(identity_.read_token());
  // No one waits for who writes into a pipe.
  ASSERT_EQ(mkfifo(settings_.token_file, 0600), 0);
  EXPECT_FALSE(identity_.read_token());
  without_token();
  EXPECT_FALSE(identity_.has_token());
}

TEST_F(HelloTest, OnlyACollectorThatKnowsTheTokenIsAnswered) {
  identity_.prepare(settings_);
  ASSERT_TRUE(reads("secret"));
  for (const bool data : {false, true}) {
    const wire::Hello said = hello(data);
    const wire::Challenge right = fakes::challenge_for(said, "secret", false);
    EXPECT_EQ(judge(data, right), "");
    EXPECT_EQ(std::string(reinterpret_cast<char*>(nonces_.collector), 16), right.nonce());
    EXPECT_EQ(judge(!data, right), "the collector has another token than this agent");
    EXPECT_EQ(code_, collect_wire_RefuseCode_REFUSE_TOKEN);
    EXPECT_EQ(judge(data, fakes::challenge_for(said, "secreT", false)),
              "the collector has another token than this agent");
    EXPECT_EQ(judge(data, fakes::challenge_for(said, "secret", true)),
              "the collector has another token than this agent");
    EXPECT_EQ(judge(data, fakes::challenge_for(said, "", false)),
              "this agent asks for a token, and the collector has none");
    EXPECT_EQ(code_, collect_wire_RefuseCode_REFUSE_TOKEN);
  }
}

TEST_F(HelloTest, ChallengeHasANonceOfItsLength) {
  identity_.prepare(settings_);
  without_token();
  wire::Challenge challenge;
  for (const size_t bytes : {0u, 1u, 15u}) {
    challenge.set_nonce(std::string(bytes, 'n'));
    code_ = collect_wire_RefuseCode_REFUSE_LIMIT;
    EXPECT_EQ(judge(false, challenge), "the Challenge can't be read") << bytes;
    EXPECT_EQ(code_, collect_wire_RefuseCode_REFUSE_PROTOCOL);
  }
  challenge.set_nonce(std::string(16, 'n'));
  EXPECT_EQ(judge(false, challenge), "");
  challenge.set_nonce(std::string(17, 'n'));
  EXPECT_EQ(judge(false, challenge), "the Challenge can't be read");
}

TEST_F(HelloTest, ProofHasWhatIsKnown) {
  identity_.prepare(settings_);
  without_token();
  EXPECT_EQ(prove(false).token_proof(), "");
  EXPECT_EQ(prove(false).resume_proof(), "");
  const std::string key = fakes::fresh_nonce();
  identity_.keep_resume_key(nonces_, reinterpret_cast<const uint8_t*>(key.data()));
  for (const bool data : {false, true}) {
    const wire::Hello said = hello(data);
    const wire::Challenge challenge = fakes::challenge_for(said, "", false);
    ASSERT_EQ(judge(data, challenge), "");
    EXPECT_EQ(prove(data).resume_proof(),
              fakes::proof_for(said, challenge, {"", key}, false).resume_proof());
    EXPECT_EQ(prove(data).token_proof(), "");
  }
  identity_.become_another();
  EXPECT_EQ(prove(false).resume_proof(), "") << "the key is of the process that it was";
  identity_.keep_resume_key(nonces_, reinterpret_cast<const uint8_t*>(key.data()));
  identity_.prepare(settings_);
  EXPECT_EQ(prove(false).resume_proof(), "");
}

TEST_F(HelloTest, EachCollectorHasAResumeKeyOfItsOwn) {
  identity_.prepare(settings_);
  without_token();
  const wire::Hello said = hello(false);
  const auto challenge_of = [&](char collector) {
    wire::Challenge challenge = fakes::challenge_for(said, "", false);
    challenge.set_collector_id(std::string(wire::kCollectorIdBytes, collector));
    return challenge;
  };
  const auto key_of = [](char collector) {
    return std::string(16, static_cast<char>(collector ^ 1));
  };
  const auto keep = [&](char collector, const std::string& key) {
    ASSERT_EQ(judge(false, challenge_of(collector)), "");
    identity_.keep_resume_key(nonces_, reinterpret_cast<const uint8_t*>(key.data()));
  };
  const auto proves = [&](char collector, const std::string& key) {
    const wire::Challenge challenge = challenge_of(collector);
    EXPECT_EQ(judge(false, challenge), "");
    return prove(false).resume_proof() ==
           fakes::proof_for(said, challenge, {"", key}, false).resume_proof();
  };
  keep('a', key_of('a'));
  EXPECT_EQ((judge(false, challenge_of('b')), prove(false).resume_proof()), "")
      << "it is new there";
  keep('b', key_of('b'));
  EXPECT_TRUE(proves('a', key_of('a')));
  EXPECT_TRUE(proves('b', key_of('b')));
  keep('a', key_of('x'));  // that one has forgotten the process
  EXPECT_TRUE(proves('a', key_of('x')));
  EXPECT_TRUE(proves('b', key_of('b')));
  // One more than there is room for: the oldest goes.
  for (char collector = 'c'; collector < static_cast<char>('a' + kMaxResumeKeys + 1); ++collector) {
    keep(collector, key_of(collector));
  }
  EXPECT_TRUE(proves('b', key_of('b')));
  EXPECT_TRUE(proves('i', key_of('i')));
  EXPECT_EQ((judge(false, challenge_of('a')), prove(false).resume_proof()), "");
  // Of one that says no id, as those of earlier versions.
  EXPECT_EQ(judge(false, fakes::challenge_for(said, "", false)), "");
  EXPECT_EQ(prove(false).resume_proof(), "");
}

TEST_F(HelloTest, ProofOfOneThatListensIsAnother) {
  settings_.role = Role::kListen;
  identity_.prepare(settings_);
  ASSERT_TRUE(reads("secret"));
  const wire::Hello said = hello(false);
  const wire::Challenge challenge = fakes::challenge_for(said, "secret", true);
  EXPECT_EQ(judge(false, challenge), "");
  EXPECT_EQ(prove(false).token_proof(),
            fakes::proof_for(said, challenge, {"secret", ""}, true).token_proof());
  EXPECT_EQ(judge(false, fakes::challenge_for(said, "secret", false)),
            "the collector has another token than this agent");
}

}  // namespace
}  // namespace collect::agent
