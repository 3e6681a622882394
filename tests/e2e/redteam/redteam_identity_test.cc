// Who says that it is a process which is known, and is not: the name of a process is in its
// manifest, and opens nothing. And who holds the collector's port, and is not the collector.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/e2e/collector_process.h"
#include "tests/e2e/raw_agent.h"
#include "tests/e2e/recorded_session.h"
#include "tests/fakes/frame_socket.h"
#include "tests/fakes/machine/other_user.h"

namespace collect::e2e {
namespace {

constexpr uint32_t kVictim = 700'001;
constexpr uint32_t kOther = 700'002;

std::string hex(const std::string& bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    text += kDigits[static_cast<uint8_t>(c) >> 4];
    text += kDigits[static_cast<uint8_t>(c) & 0xF];
  }
  return text;
}

std::string from_hex(const std::string& text) {
  std::string bytes;
  for (size_t at = 0; at + 1 < text.size(); at += 2) {
    bytes += static_cast<char>(std::stoi(text.substr(at, 2), nullptr, 16));
  }
  return bytes;
}

// What a connection that answers the challenge with `answer` is refused with; 0 when it is not.
template <class Answer>
int refusal_of(uint16_t port, const wire::Hello& hello, Answer answer) {
  RawConnection connection(port);
  connection.send(wire::FrameType::kHello, hello);
  const auto frame = connection.receive();
  wire::Challenge challenge;
  if (!frame || frame->type != wire::FrameType::kChallenge ||
      !challenge.ParseFromString(frame->body)) {
    ADD_FAILURE() << "no challenge came";
    return 0;
  }
  connection.send(wire::FrameType::kProof, answer(challenge));
  const auto refuse = connection.refusal();
  return refuse ? refuse->code() : 0;
}

class Identity : public testing::Test {
 protected:
  // The process id, from where everybody who may look at sessions has it.
  std::string stolen_id() {
    const auto directories = session_directories(collector_.root(), static_cast<int>(kVictim));
    if (directories.empty()) return {};
    const auto manifest = nlohmann::json::parse(read_text_file(directories[0] + "/manifest.json"));
    return from_hex(manifest["process"]["process_id"].get<std::string>());
  }

  // Every way that is known to be the victim without its key, on both channels.
  void expect_refused_without_key(const std::string& other_key) {
    const uint16_t port = collector_.ingest_port();
    for (const wire::Channel channel : {wire::CHANNEL_CONTROL, wire::CHANNEL_DATA}) {
      SCOPED_TRACE(channel);
      const auto greeting = [&] { return hello(channel, kVictim, stolen_); };
      const auto with_key = [&](const std::string& key) {
        const wire::Hello said = greeting();
        return refusal_of(port, said, [&](const wire::Challenge& challenge) {
          return fakes::proof_for(said, challenge, {"", key}, false);
        });
      };
      EXPECT_EQ(with_key(""), wire::REFUSE_RESUME) << "no key";
      EXPECT_EQ(with_key(std::string(16, '\0')), wire::REFUSE_RESUME) << "a guessed key";
      EXPECT_EQ(with_key(stolen_), wire::REFUSE_RESUME) << "the name as the key";
      EXPECT_EQ(with_key(other_key), wire::REFUSE_RESUME) << "another process's key";
      // What was overheard: a right hello with its right proof, said again.
      EXPECT_EQ(refusal_of(port, channel == wire::CHANNEL_CONTROL ? heard_control_ : heard_data_,
                           [&](const wire::Challenge&) {
                             return channel == wire::CHANNEL_CONTROL ? heard_control_proof_
                                                                     : heard_data_proof_;
                           }),
                wire::REFUSE_RESUME)
          << "a replay";
      EXPECT_EQ(refusal_of(port, greeting(),
                           [&](const wire::Challenge& challenge) {
                             wire::Proof proof;
                             proof.set_resume_proof(challenge.nonce() + challenge.nonce());
                             return proof;
                           }),
                wire::REFUSE_RESUME)
          << "the nonce as the proof";
      // The right proof for the other channel, as the victim itself could be made to give it.
      const wire::Hello said = greeting();
      wire::Hello crossed = said;
      crossed.set_channel(channel == wire::CHANNEL_CONTROL ? wire::CHANNEL_DATA
                                                           : wire::CHANNEL_CONTROL);
      EXPECT_EQ(refusal_of(port, said,
                           [&](const wire::Challenge& challenge) {
                             return fakes::proof_for(crossed, challenge, victim_secrets_, false);
                           }),
                wire::REFUSE_RESUME)
          << "a proof of the other channel";
      EXPECT_EQ(refusal_of(port, said,
                           [&](const wire::Challenge& challenge) {
                             return fakes::proof_for(said, challenge, victim_secrets_, true);
                           }),
                wire::REFUSE_RESUME)
          << "a proof of a connection that was dialled";
    }
  }

  // A right opening of both channels, as someone reads it on the wire.
  void overhear(RawConnection& connection, wire::Hello& hello, wire::Proof& proof) {
    connection.send(wire::FrameType::kHello, hello);
    const auto frame = connection.receive();
    wire::Challenge challenge;
    ASSERT_TRUE(frame && challenge.ParseFromString(frame->body));
    proof = fakes::proof_for(hello, challenge, victim_secrets_, false);
    connection.send(wire::FrameType::kProof, proof);
    auto answer = connection.receive();
    while (answer && answer->type == wire::FrameType::kResume) answer = connection.receive();
    ASSERT_TRUE(answer && answer->type == wire::FrameType::kWelcome);
  }

  void expect_stored(RawAgent& victim, uint64_t first, uint32_t count) {
    ASSERT_TRUE(victim.data.send(page_bytes(1, first, events(1000 + first, count))));
    ASSERT_TRUE(victim.control.receive_ack(1, first + count)) << "the victim was dropped";
  }

  // Ends the victim's recording: its session has every event.
  void expect_sealed_whole(RawAgent& victim, uint64_t count) {
    wire::StreamClose close;
    close.set_stream_id(1);
    close.set_index_count(count);
    wire::RecordingEnd end;
    end.set_recording(1);
    ASSERT_TRUE(victim.data.send(wire::FrameType::kStreamClose, close));
    ASSERT_TRUE(victim.data.send(wire::FrameType::kRecordingEnd, end));
    const auto sessions = sealed_sessions(collector_.root(), static_cast<int>(kVictim));
    ASSERT_EQ(sessions.size(), 1u);
    EXPECT_EQ(sessions[0].state(), "complete");
    EXPECT_EQ(sessions[0].totals().events, count);
    EXPECT_EQ(sessions[0].totals().lost, 0u);
    // Removed right behind the last manifest.
    EXPECT_TRUE(eventually(seconds(30), [&] {
      return !std::filesystem::exists(sessions[0].directory() + "/resume.key");
    }));
    const Ending verified =
        run(scratch_.path(), {program("collectctl"), "verify", sessions[0].directory()});
    EXPECT_TRUE(verified.exited_with(0)) << verified.output << verified.errors;
  }

  // Nothing that can be looked at from outside has the key.
  void expect_secret(const std::string& key) {
    const std::string text = hex(key);
    const auto shows = [&](const std::string& content) {
      return content.find(text) != std::string::npos || content.find(key) != std::string::npos;
    };
    EXPECT_FALSE(shows(collector_.process().errors() + collector_.process().output())) << "the log";
    for (const auto& arguments : {Arguments{"sessions", "--json"}, Arguments{"agents", "--json"},
                                  Arguments{"status"}, Arguments{"inspect", "--at-collector"},
                                  Arguments{"inspect", "--at-collector", "--files"}}) {
      const Ending answer = collector_.ctl(arguments);
      EXPECT_FALSE(shows(answer.output + answer.errors)) << arguments[0];
    }
    const std::string process = "/proc/" + std::to_string(collector_.process().pid());
    EXPECT_FALSE(
        shows(read_text_file(process + "/cmdline") + read_text_file(process + "/environ")));
    for (const auto& entry : std::filesystem::recursive_directory_iterator(collector_.root())) {
      if (!entry.is_regular_file()) continue;
      if (entry.path().filename() == "resume.key") {
        struct stat info{};
        ASSERT_EQ(stat(entry.path().c_str(), &info), 0);
        EXPECT_EQ(info.st_mode & 0777, 0600u) << entry.path();
        continue;
      }
      EXPECT_FALSE(shows(read_text_file(entry.path()))) << entry.path();
    }
  }

  Scratch scratch_;
  CollectorProcess collector_{scratch_, {"--heartbeat-ms", "60000"}};
  std::string stolen_;
  fakes::Secrets victim_secrets_;
  wire::Hello heard_control_;
  wire::Hello heard_data_;
  wire::Proof heard_control_proof_;
  wire::Proof heard_data_proof_;
};

TEST_F(Identity, StolenProcessIdOpensNothing) {
  const uint16_t port = collector_.ingest_port();
  auto other = std::make_unique<RawAgent>(port, kOther);
  auto victim = std::make_unique<RawAgent>(port, kVictim);
  ASSERT_TRUE(other->ready && victim->ready);
  victim_secrets_ = victim->secrets;
  const std::string key = victim_secrets_.resume_key;
  ASSERT_EQ(key.size(), 16u);
  ASSERT_NE(key, other->secrets.resume_key);
  expect_stored(*victim, 0, 100);
  stolen_ = stolen_id();
  ASSERT_EQ(stolen_, victim->process_id);

  // The victim comes back with its key, and someone reads along.
  victim.reset();
  heard_control_ = hello(wire::CHANNEL_CONTROL, kVictim, stolen_);
  heard_data_ = hello(wire::CHANNEL_DATA, kVictim, stolen_);
  {
    RawConnection control(port);
    overhear(control, heard_control_, heard_control_proof_);
    RawConnection data(port);
    overhear(data, heard_data_, heard_data_proof_);
  }
  victim = std::make_unique<RawAgent>(port, kVictim, victim_secrets_);
  ASSERT_TRUE(victim->ready) << "the right key is not taken";

  {
    SCOPED_TRACE("while the victim is connected");
    expect_refused_without_key(other->secrets.resume_key);
    expect_stored(*victim, 100, 100);
    expect_secret(key);
  }
  victim.reset();
  {
    SCOPED_TRACE("while its link is broken");
    expect_refused_without_key(other->secrets.resume_key);
  }
  victim = std::make_unique<RawAgent>(port, kVictim, victim_secrets_);
  ASSERT_TRUE(victim->ready);
  expect_stored(*victim, 200, 100);

  collector_.process().send_signal(SIGKILL);
  (void)collector_.process().wait(seconds(30));
  collector_.start_again();
  {
    SCOPED_TRACE("after the collector was killed");
    expect_refused_without_key(other->secrets.resume_key);
  }
  victim = std::make_unique<RawAgent>(port, kVictim, victim_secrets_);
  ASSERT_TRUE(victim->ready) << "the key did not outlive the collector";
  EXPECT_EQ(victim->secrets.resume_key, key) << "a process that is known gets no new key";
  expect_stored(*victim, 300, 100);
  expect_secret(key);
  ASSERT_NO_FATAL_FAILURE(expect_sealed_whole(*victim, 400));
  expect_secret(key);
}

// The collector has lost the key: the session is kept as it is, and the agent continues in another.
TEST_F(Identity, SealsASessionWithoutItsKey) {
  RawAgent victim(collector_.ingest_port(), kVictim);
  ASSERT_TRUE(victim.ready);
  expect_stored(victim, 0, 100);
  const auto directories = session_directories(collector_.root(), static_cast<int>(kVictim));
  ASSERT_EQ(directories.size(), 1u);
  collector_.process().send_signal(SIGKILL);
  (void)collector_.process().wait(seconds(30));
  write_text_file(directories[0] + "/resume.key", "collect resume key 1\n00");  // torn
  collector_.start_again();
  const auto sessions = sealed_sessions(collector_.root(), static_cast<int>(kVictim));
  ASSERT_EQ(sessions.size(), 1u);
  EXPECT_EQ(sessions[0].totals().events, 100u);
  RawAgent again(collector_.ingest_port(), kVictim, victim.secrets);
  EXPECT_TRUE(again.ready) << "a process that is not known is new";
  EXPECT_NE(again.secrets.resume_key, victim.secrets.resume_key);
}

// A real agent with a token, and someone else on the collector's port: it hears no token, no proof
// that it could use, and no page.
TEST(Squatter, LearnsNothingOfTheTokenAndGetsNoPage) {
  Scratch scratch;
  const std::string token = "a token of forty-two letters, all its own.";
  write_text_file(scratch / "token", token + "\n");
  fakes::ListeningSocket squatter;
  Environment environment = {{"LD_PRELOAD", agent_library()},
                             {"COLLECT_CONNECT", squatter.address()},
                             {"COLLECT_TOKEN_FILE", scratch / "token"},
                             {"COLLECT_EXIT_FLUSH_MS", "1000"},
                             {"COUNT_FILE", scratch / "count"}};
  ChildProcess job(scratch.path(), {traced_program("manners")}, environment);
  std::string heard;
  int answered = 0;
  for (int attempt = 0; attempt < 4; ++attempt) {
    fakes::FrameSocket socket = squatter.accept(std::chrono::seconds(5));
    if (!socket.is_open()) break;
    const auto greeting = socket.receive();
    if (!greeting) continue;
    heard.append(greeting->body.begin(), greeting->body.end());
    const auto said = greeting->parsed<wire::Hello>();
    if (attempt % 2 == 0) {
      socket.send(wire::FrameType::kChallenge,
                  fakes::challenge_for(said, attempt == 0 ? "" : "a guess", false));
    } else {
      wire::Welcome welcome;  // straight away
      welcome.set_version(wire::kProtocolVersion);
      welcome.set_resume_key(std::string(16, 'k'));
      socket.send(wire::FrameType::kWelcome, welcome);
    }
    while (const auto frame = socket.receive(std::chrono::seconds(5))) {
      EXPECT_EQ(frame->type, wire::FrameType::kRefuse);
      heard.append(frame->body.begin(), frame->body.end());
    }
    ++answered;
  }
  EXPECT_GT(answered, 0);
  EXPECT_EQ(heard.find(token), std::string::npos);
  EXPECT_EQ(heard.find(token.substr(0, 8)), std::string::npos);
  EXPECT_TRUE(job.wait(seconds(60)).exited_with(0)) << "the program is not held up";
}

// The token crosses no plain connection in either direction, and both ends know that the other has
// it: read along by a relay.
TEST(Token, IsNeverOnTheWire) {
  Scratch scratch;
  const std::string token = "another token that only two should know";
  write_text_file(scratch / "token", token);
  CollectorProcess collector(scratch, {"--token-file", scratch / "token"});
  RawConnection connection(collector.ingest_port());
  const wire::Hello said = hello(wire::CHANNEL_CONTROL, kVictim, std::string(16, 'p'));
  connection.send(wire::FrameType::kHello, said);
  const auto frame = connection.receive();
  ASSERT_TRUE(frame.has_value());
  EXPECT_EQ(frame->body.find(token), std::string::npos);
  wire::Challenge challenge;
  ASSERT_EQ(frame->type, wire::FrameType::kChallenge);
  ASSERT_TRUE(challenge.ParseFromString(frame->body));
  EXPECT_TRUE(fakes::collector_knows(token, said, challenge, false));
  // The collector's own proof, sent back to it.
  wire::Proof reflected;
  reflected.set_token_proof(challenge.token_proof());
  connection.send(wire::FrameType::kProof, reflected);
  const auto refuse = connection.refusal();
  ASSERT_TRUE(refuse.has_value());
  EXPECT_EQ(refuse->code(), wire::REFUSE_TOKEN);
  // A proof of one connection on another.
  wire::Proof heard;
  {
    RawConnection right(collector.ingest_port());
    right.send(wire::FrameType::kHello, said);
    const auto asked = right.receive();
    ASSERT_TRUE(asked && challenge.ParseFromString(asked->body));
    heard = fakes::proof_for(said, challenge, {token, ""}, false);
    right.send(wire::FrameType::kProof, heard);
    const auto welcome = right.receive();
    ASSERT_TRUE(welcome.has_value());
    EXPECT_EQ(welcome->type, wire::FrameType::kWelcome);
  }
  EXPECT_EQ(
      refusal_of(collector.ingest_port(), said, [&](const wire::Challenge&) { return heard; }),
      wire::REFUSE_TOKEN);
}

// ---- the right key in the wrong hands

// How a connection of this process is answered: "welcome", or the number of its refusal.
std::string answer_to(RawConnection connection, wire::Channel channel, const RawAgent& victim) {
  const auto frame = introduce(connection, hello(channel, kVictim, victim.process_id),
                               {"", victim.secrets.resume_key});
  if (!frame) return "nothing";
  wire::Refuse refuse;
  if (frame->type != wire::FrameType::kRefuse || !refuse.ParseFromString(frame->body)) {
    return "welcome";
  }
  return std::to_string(refuse.code());
}

// `Address` is a port, or the path of a Unix socket.
template <class Address>
void expect_key_opens_nothing_for_others(const Address& address, const std::string& root) {
  auto victim = std::make_unique<RawAgent>(address, kVictim);
  ASSERT_TRUE(victim->ready);
  ASSERT_TRUE(victim->data.send(page_bytes(1, 0, events(1000, 100))));
  ASSERT_TRUE(victim->control.receive_ack(1, 100));
  const auto expect_refused = [&] {
    for (const wire::Channel channel : {wire::CHANNEL_CONTROL, wire::CHANNEL_DATA}) {
      EXPECT_EQ(
          fakes::as_other_user([&] { return answer_to(RawConnection(address), channel, *victim); }),
          std::to_string(wire::REFUSE_RESUME));
    }
  };
  expect_refused();
  ASSERT_TRUE(victim->data.send(page_bytes(1, 100, events(1100, 100))));
  ASSERT_TRUE(victim->control.receive_ack(1, 200)) << "the victim was dropped";
  const fakes::Secrets secrets = victim->secrets;
  victim->control.close();
  victim->data.close();
  expect_refused();
  // The same key, and the same user.
  victim = std::make_unique<RawAgent>(address, kVictim, secrets);
  ASSERT_TRUE(victim->ready);
  ASSERT_TRUE(victim->data.send(page_bytes(1, 200, events(1200, 100))));
  ASSERT_TRUE(victim->control.receive_ack(1, 300));
  ASSERT_TRUE(close_stream(victim->data, 1, 300) && end_recording(victim->data, 1));
  const auto sessions = sealed_sessions(root, static_cast<int>(kVictim));
  ASSERT_EQ(sessions.size(), 1u);
  EXPECT_EQ(sessions[0].state(), "complete");
  EXPECT_EQ(sessions[0].totals().events, 300u);
}

TEST(IdentityOfUsers, KeyOverTcpBelongsToItsUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const Scratch scratch;
  CollectorProcess collector(scratch, {"--local-access", "any", "--heartbeat-ms", "60000"});
  expect_key_opens_nothing_for_others(collector.ingest_port(), collector.root());
}

TEST(IdentityOfUsers, KeyOverAUnixSocketBelongsToItsUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  std::string directory = "/tmp/collect_redteam_XXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  ASSERT_EQ(::chmod(directory.c_str(), 0755), 0);
  const Scratch scratch;
  const std::string root = scratch / "root";
  ChildProcess daemon(scratch.path(),
                      {program("collectord"), "--root", root, "--adb", "off", "--usbmux", "off",
                       "--ingest", "unix:" + directory + "/ingest", "--control",
                       "unix:" + directory + "/control", "--local-access", "any"});
  ASSERT_TRUE(eventually(seconds(20), [&] {
    return daemon.errors().find("is ready") != std::string::npos;
  })) << daemon.errors();
  expect_key_opens_nothing_for_others(directory + "/ingest", root);
  daemon.send_signal(SIGTERM);
  EXPECT_TRUE(daemon.wait(seconds(30)).exited_with(0)) << daemon.errors();
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace collect::e2e
