// The collector dials agents that listen.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <thread>

#include "tests/daemon/ingest/ingest_fixture.h"

namespace collect::ingest {
namespace {

using fakes::FakeAgent;
using fakes::FrameSocket;
using fakes::ListeningSocket;

class DiallerTest : public IngestTest {
 protected:
  Result<AgentSnapshot> attach(const std::string& to) {
    return answer_of<AgentSnapshot>([&](auto done) { ingest_->attach(to, done); });
  }
  // Takes the two connections of one attempt, and checks what they begin with.
  bool answer(ListeningSocket& listener, FakeAgent& agent) {
    FrameSocket control = listener.accept();
    const auto dial = control.receive_type(wire::FrameType::kDial);
    if (!dial) return false;
    EXPECT_EQ(dial->parsed<wire::Dial>().channel(), wire::CHANNEL_CONTROL);
    EXPECT_EQ(dial->parsed<wire::Dial>().collector(), "collector under test");
    EXPECT_EQ(dial->parsed<wire::Dial>().min_version(), wire::kProtocolVersion);
    EXPECT_EQ(dial->parsed<wire::Dial>().max_version(), wire::kProtocolVersion);
    if (!agent.open_control(std::move(control), true)) return false;
    FrameSocket data = listener.accept();
    const auto second = data.receive_type(wire::FrameType::kDial);
    if (!second) return false;
    EXPECT_EQ(second->parsed<wire::Dial>().channel(), wire::CHANNEL_DATA);
    return agent.open_data(std::move(data), true);
  }
  // Takes one connection, and refuses it.
  FrameSocket refuse(ListeningSocket& listener, const std::string& reason) {
    FrameSocket socket = listener.accept();
    EXPECT_TRUE(socket.receive_type(wire::FrameType::kDial));
    wire::Refuse refuse;
    refuse.set_code(wire::REFUSE_VERSION);
    refuse.set_reason(reason);
    EXPECT_TRUE(socket.send(wire::FrameType::kRefuse, refuse));
    return socket;
  }
};

TEST_F(DiallerTest, ListeningAgentIsDialledAndRecorded) {
  ListeningSocket listener;
  start();
  const auto entry = attach(listener.address());
  ASSERT_TRUE(entry.ok());
  EXPECT_EQ(entry->state, AgentState::kDialing);
  EXPECT_EQ(entry->address, listener.address());
  FakeAgent agent;
  ASSERT_TRUE(answer(listener, agent));
  record_all(agent, 1, 1, 100);
  const auto session = reported_.session_in(SessionState::kComplete);
  ASSERT_TRUE(session.has_value());
  EXPECT_EQ(stored_events(*session, 0, 100), fakes::index_events(0, 100));
  const auto shown = reported_.agent([](const auto& a) { return a.process_name == "fake"; });
  ASSERT_TRUE(shown.has_value());
  EXPECT_TRUE(shown->dialled);
  EXPECT_EQ(shown->address, listener.address());
}

// No child of the daemon gets it.
TEST_F(DiallerTest, DialledSocketsAreCloseOnExec) {
  ListeningSocket listener;
  start();
  ASSERT_TRUE(attach(listener.address()).ok());
  FakeAgent agent;
  ASSERT_TRUE(answer(listener, agent));
  const auto port = static_cast<uint16_t>(std::atoi(listener.address().substr(10).c_str()));
  int dialled = 0;
  for (int handle = 0; handle < 1024; ++handle) {
    sockaddr_in peer{};
    socklen_t bytes = sizeof peer;
    if (::getpeername(handle, reinterpret_cast<sockaddr*>(&peer), &bytes) != 0) continue;
    if (peer.sin_family != AF_INET || ntohs(peer.sin_port) != port) continue;
    ++dialled;
    int no_delay = 0;
    bytes = sizeof no_delay;
    EXPECT_EQ(::fcntl(handle, F_GETFD), FD_CLOEXEC);
    EXPECT_EQ(::getsockopt(handle, IPPROTO_TCP, TCP_NODELAY, &no_delay, &bytes), 0);
    EXPECT_NE(no_delay, 0);
  }
  EXPECT_EQ(dialled, 2);
}

// A user who dials a process that was detached wants it back.
TEST_F(DiallerTest, DiallingEndsDetachment) {
  ListeningSocket listener;
  start();
  ASSERT_TRUE(attach(listener.address()).ok());
  FakeAgent agent;
  ASSERT_TRUE(answer(listener, agent));
  const auto shown =
      reported_.agent([](const auto& one) { return one.state == AgentState::kConnected; });
  ASSERT_TRUE(shown.has_value());
  EXPECT_TRUE(
      answer_of<AgentSnapshot>([&](auto done) { ingest_->detach(shown->process_id, done); }).ok());
  ASSERT_TRUE(agent.wait_refused());
  EXPECT_EQ(agent.refused()->code(), wire::REFUSE_DETACHED);
  EXPECT_FALSE(agent.connect(address())) << "it does not get in by itself";
  ASSERT_TRUE(answer(listener, agent));
  EXPECT_TRUE(agent.connect(address()));
}

TEST_F(DiallerTest, AddressesOfTheConfigurationAreDialled) {
  ListeningSocket listener(root_ + "/agent.sock");
  options_.attach = {listener.address()};
  start();
  FakeAgent agent;
  ASSERT_TRUE(answer(listener, agent));
  record_all(agent, 1, 1, 10);
}

// As adb forward and iproxy do it when no app listens behind them.
TEST_F(DiallerTest, EndBeforeTheHelloIsNoAgentYet) {
  ListeningSocket listener;
  start();
  ASSERT_TRUE(attach(listener.address()).ok());
  for (int attempt = 0; attempt < 3; ++attempt) listener.accept().close();
  FakeAgent agent;
  ASSERT_TRUE(answer(listener, agent));
  EXPECT_EQ(ingest_->counters().connections_refused, 0u);
}

TEST_F(DiallerTest, BrokenLinkIsDialledAgainAndResumed) {
  ListeningSocket listener;
  start();
  ASSERT_TRUE(attach(listener.address()).ok());
  FakeAgent agent;
  ASSERT_TRUE(answer(listener, agent));
  ASSERT_TRUE(agent.start_recording(1));
  ASSERT_TRUE(agent.open_stream(1, 11));
  ASSERT_TRUE(agent.send_events(1, 0, 100));
  ASSERT_TRUE(agent.wait_stored(1, 100));
  agent.disconnect();
  ASSERT_TRUE(answer(listener, agent));
  EXPECT_TRUE(agent.welcome().resumed());
  EXPECT_EQ(agent.resumed().at(1).index_next(), 100u);
}

TEST_F(DiallerTest, ShowsUnreachableAddressAsDialing) {
  std::string nowhere;
  {
    ListeningSocket listener;
    nowhere = listener.address();
  }
  start();
  ASSERT_TRUE(attach(nowhere).ok());
  EXPECT_TRUE(reported_.agent([](const auto& agent) {
    return agent.state == AgentState::kDialing && agent.status.find("refused") != std::string::npos;
  }));
  const auto detached =
      answer_of<std::string>([&](auto done) { ingest_->detach_address(nowhere, done); });
  EXPECT_TRUE(detached.ok());
  const auto again =
      answer_of<std::string>([&](auto done) { ingest_->detach_address(nowhere, done); });
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.code(), Code::kNotFound);
}

// A place that only someone else can reach: a descriptor comes from another thread.
TEST_F(DiallerTest, ConnectorBringsTheSocketAndHearsOfRefusals) {
  ListeningSocket listener;
  start();
  std::mutex mutex;
  std::vector<DialReport> reports;
  bool fail = true;
  std::atomic<bool> is_over{false};  // from then on nothing is answered
  const auto heard = [&](auto condition) {
    return eventually([&] {
      const std::lock_guard lock(mutex);
      return !reports.empty() && condition(reports.back());
    });
  };
  const Address address = *parse_address(listener.address());
  ingest_->attach(
      "adb:A:collect_agent_1",
      [&](OnConnected done) {
        if (is_over) return;
        std::thread([&, done = std::move(done)] {
          {
            const std::lock_guard lock(mutex);
            if (fail) {
              done(Error{Code::kUnavailable, "the cable is out"});
              return;
            }
          }
          asio::io_context io;
          Socket socket(io);
          socket.connect(*numeric_endpoint(address));
          done(ConnectedSocket::from(std::move(socket)));
        }).detach();
      },
      [&](const DialReport& report) {
        const std::lock_guard lock(mutex);
        reports.push_back(report);
      });
  EXPECT_TRUE(heard([](const auto& report) { return report.status == "the cable is out"; }));
  {
    const std::lock_guard lock(mutex);
    fail = false;
  }
  const FrameSocket refused = refuse(listener, "version 9");
  EXPECT_TRUE(heard([](const auto& report) {
    return report.refused == wire::REFUSE_VERSION &&
           report.status.find("version 9") != std::string::npos;
  }));
  FakeAgent agent;
  ASSERT_TRUE(answer(listener, agent));
  EXPECT_TRUE(heard([](const auto& report) { return report.state == DialReport::State::kUp; }));
  record_all(agent, 1, 1, 10);
  const auto shown =
      reported_.agent([](const auto& one) { return one.address == "adb:A:collect_agent_1"; });
  ASSERT_TRUE(shown.has_value());
  EXPECT_EQ(shown->id, 1u) << "the place has no entry of its own";
  is_over = true;
  agent.disconnect();
  EXPECT_TRUE(eventually([&] {
    const std::lock_guard lock(mutex);
    return std::ranges::any_of(
        reports, [](const DialReport& report) { return report.status == "the link ended"; });
  }));
  const auto detached = answer_of<std::string>(
      [&](auto done) { ingest_->detach_address("adb:A:collect_agent_1", done); });
  EXPECT_TRUE(detached.ok());
  EXPECT_TRUE(
      heard([](const auto& report) { return report.state == DialReport::State::kStopped; }));
}

TEST_F(DiallerTest, AddressHasOneEntryUntilAnAgentAnswers) {
  ListeningSocket listener;
  start();
  const auto first = attach(listener.address());
  const auto again = attach(listener.address());
  ASSERT_TRUE(first.ok() && again.ok());
  EXPECT_EQ(first->id, again->id);
  EXPECT_TRUE(first->dialled);
  EXPECT_EQ(first->status, "not tried yet");
  EXPECT_EQ(reported_.agent_count(), 1u);
  FakeAgent agent;
  ASSERT_TRUE(answer(listener, agent));
  ASSERT_TRUE(reported_.agent([](const auto& one) { return one.state == AgentState::kConnected; }));
  EXPECT_TRUE(eventually([this] { return reported_.agent_count() == 1; })) << "the agent's own";
  EXPECT_EQ(ingest_->budget().used(principal::Resource::kConnections), 2u);
  EXPECT_EQ(ingest_->budget().used(principal::Resource::kDescriptors), 2u);
  // While it is away the address shows again, with the reason.
  listener.close();
  agent.disconnect();
  EXPECT_TRUE(reported_.agent([&](const auto& one) {
    return one.id == first->id && one.status.find("refused") != std::string::npos;
  }));
  EXPECT_EQ(ingest_->budget().used(principal::Resource::kConnections), 0u);
}

// Detached it is dialled no more, by whichever step it was at; attached again it is.
TEST_F(DiallerTest, DialsAgainAfterDetachAndAttach) {
  ListeningSocket listener;
  start();
  const auto first = attach(listener.address());
  ASSERT_TRUE(first.ok());
  FakeAgent agent;
  ASSERT_TRUE(answer(listener, agent));
  const auto detached =
      answer_of<std::string>([&](auto done) { ingest_->detach_address(listener.address(), done); });
  ASSERT_TRUE(detached.ok());
  EXPECT_EQ(*detached, listener.address());
  record_all(agent, 1, 1, 10);  // links that are up are not its business
  agent.disconnect();
  EXPECT_FALSE(listener.accept(milliseconds{300}).is_open());
  const auto second = attach(listener.address());
  ASSERT_TRUE(second.ok());
  EXPECT_NE(second->id, first->id);
  EXPECT_TRUE(answer(listener, agent));
}

TEST_F(DiallerTest, AnswerThatComesTooLateIsClosed) {
  ListeningSocket listener;
  start();
  std::promise<OnConnected> asked;
  std::atomic<int> stopped{0};
  ingest_->attach(
      "place", [&](OnConnected done) { asked.set_value(std::move(done)); },
      [&](const DialReport& report) { stopped += report.state == DialReport::State::kStopped; });
  const OnConnected done = asked.get_future().get();
  ASSERT_TRUE(
      answer_of<std::string>([&](auto answer) { ingest_->detach_address("place", answer); }).ok());
  EXPECT_EQ(stopped, 1);
  asio::io_context io;
  Socket socket(io);
  socket.connect(*numeric_endpoint(*parse_address(listener.address())));
  done(ConnectedSocket::from(std::move(socket)));
  FrameSocket accepted = listener.accept();
  EXPECT_FALSE(accepted.receive().has_value()) << "not a byte";
  EXPECT_FALSE(accepted.timed_out());
  EXPECT_EQ(stopped, 1);
}

TEST_F(DiallerTest, AgentThatAnswersForTheOtherChannelIsRefused) {
  ListeningSocket listener;
  start();
  ASSERT_TRUE(attach(listener.address()).ok());
  FrameSocket control = listener.accept();
  ASSERT_TRUE(control.receive_type(wire::FrameType::kDial));
  FakeAgent agent;
  EXPECT_FALSE(agent.open_data(std::move(control), true));
  ASSERT_TRUE(agent.refused().has_value());
  EXPECT_EQ(agent.refused()->code(), wire::REFUSE_PROTOCOL);
  EXPECT_TRUE(agent.refused()->retry());
  EXPECT_TRUE(reported_.agent(
      [](const auto& one) { return one.status == "the agent answered for another channel"; }));
  EXPECT_TRUE(answer(listener, agent));
}

TEST_F(DiallerTest, SoManyAddressesMayBeAttached) {
  std::mutex mutex;
  std::string refused;
  start();
  const auto attach_place = [&](size_t number) {
    ingest_->attach(
        "place " + std::to_string(number), [](const OnConnected&) {},
        [&](const DialReport& report) {
          const std::lock_guard lock(mutex);
          if (report.status.starts_with("more than")) refused = report.status;
        });
  };
  for (size_t number = 0; number < kMaxAttachedAddresses; ++number) attach_place(number);
  attach_place(0);  // attached already, which is as well
  const auto known = attach("127.0.0.1:1");
  ASSERT_FALSE(known.ok());
  EXPECT_EQ(known.code(), Code::kLimit);
  {
    const std::lock_guard lock(mutex);
    EXPECT_EQ(refused, "");
  }
  attach_place(kMaxAttachedAddresses);
  EXPECT_TRUE(eventually([&] {
    const std::lock_guard lock(mutex);
    return refused == "more than 256 attached addresses: detach one first";
  }));
  EXPECT_TRUE(answer_of<std::string>([&](auto answer) {
                ingest_->detach_address("place 7", answer);
              }).ok());
  EXPECT_TRUE(attach("127.0.0.1:1").ok());
  stop();  // it reports to what ends here
}

// All of them at once: each takes its five seconds.
TEST_F(DiallerTest, DropsSilentPeersAtTheirDeadline) {
  ListeningSocket listener;
  start();
  std::mutex mutex;
  std::vector<std::string> statuses;
  ingest_->attach(
      "place", [](const OnConnected&) {},
      [&](const DialReport& report) {
        const std::lock_guard lock(mutex);
        statuses.push_back(report.status);
      });
  ASSERT_TRUE(attach(listener.address()).ok());
  FrameSocket silent = listener.accept();
  FrameSocket half = FrameSocket::connect(address());
  ASSERT_TRUE(half.send(wire::FrameType::kHello, FakeAgent().hello(wire::CHANNEL_CONTROL)));
  ASSERT_TRUE(half.receive_type(wire::FrameType::kChallenge).has_value());
  EXPECT_TRUE(reported_.agent([](const auto& one) { return one.status == "no hello within 5 s"; }));
  const auto dial = silent.receive_type(wire::FrameType::kRefuse);
  ASSERT_TRUE(dial.has_value());
  EXPECT_EQ(dial->parsed<wire::Refuse>().reason(), "no hello within 5 s");
  EXPECT_TRUE(dial->parsed<wire::Refuse>().retry());
  const auto proof = half.receive_type(wire::FrameType::kRefuse);
  ASSERT_TRUE(proof.has_value());
  EXPECT_EQ(proof->parsed<wire::Refuse>().reason(), "no proof within 5 s");
  EXPECT_TRUE(eventually([&] {
    const std::lock_guard lock(mutex);
    return !statuses.empty() && statuses[0] == "no connection within 5 s";
  }));
  stop();  // it reports to what ends here
}

TEST_F(DiallerTest, AddressesThatAreNoneAreRefused) {
  start();
  for (const char* text : {"", "nowhere", "host:", "host:65536", "127.0.0.1:0", "unix:", ":1"}) {
    const auto entry = attach(text);
    ASSERT_FALSE(entry.ok()) << text;
    EXPECT_EQ(entry.code(), Code::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace collect::ingest
