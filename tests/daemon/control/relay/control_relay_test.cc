// What passes between the clients of the control plane and gRPC, both played by the test.
#include "daemon/control/relay/control_relay.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <thread>

#include "tests/daemon/control/http2_frames.h"

namespace collect::control {
namespace {

using principal::Principal;
using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;
using testing::HasSubstr;

const Principal kUser = Principal::of_uid(1000);

Principal address(int number) {
  return {Principal::Kind::kAddress, "192.0.2." + std::to_string(number)};
}

// One end of a connection, as the test has it. Nothing blocks.
class End {
 public:
  explicit End(int fd = -1) : fd_(fd) {}
  ~End() { close(); }
  End(End&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  End& operator=(End&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }

  int fd() const { return fd_; }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  void end_sending() const { ::shutdown(fd_, SHUT_WR); }
  // How much the other side took.
  size_t send(const std::string& bytes) const {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    return sent < 0 ? 0 : static_cast<size_t>(sent);
  }
  // What has come so far.
  std::string receive() {
    std::string text;
    char some[4096];
    ssize_t got = 0;
    while ((got = ::recv(fd_, some, sizeof some, MSG_DONTWAIT)) > 0) {
      text.append(some, static_cast<size_t>(got));
    }
    is_at_end_ = is_at_end_ || got == 0;
    return text;
  }
  // Nothing more comes: seen by receive().
  bool is_at_end() const { return is_at_end_; }

 private:
  int fd_;
  bool is_at_end_ = false;
};

class ControlRelayTest : public testing::Test {
 protected:
  void SetUp() override {
    rlimit limit{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    (void)::setrlimit(RLIMIT_NOFILE, &limit);
    start(false);
  }
  void start(bool is_tls) {
    relay_ = std::make_unique<ControlRelay>(is_tls);
    ASSERT_TRUE(relay_->open().ok());
  }
  static std::pair<End, int> connection() {
    int pair[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    return {End(pair[0]), pair[1]};
  }
  // The client's end; the server's is in `server_`.
  End admit(const Principal& principal, Status* admitted = nullptr) {
    auto [client, accepted] = connection();
    const Status status =
        relay_->admit(accepted, principal, [this](int handle) { server_ = End(handle); });
    if (admitted != nullptr) {
      *admitted = status;
    } else {
      EXPECT_TRUE(status.ok());
    }
    return std::move(client);
  }
  End refuse(const std::string& reason) {
    auto [client, accepted] = connection();
    relay_->refuse(accepted, reason);
    return std::move(client);
  }
  // As the listener does it, for so long or until nothing happens any more.
  void run(milliseconds time = milliseconds(200)) {
    const auto end = steady_clock::now() + time;
    while (steady_clock::now() < end) {
      pollfd waited{relay_->handle(), POLLIN, 0};
      const auto left = std::chrono::duration_cast<milliseconds>(end - steady_clock::now());
      const int wait = std::min(relay_->wait_ms(), static_cast<int>(left.count()));
      if (::poll(&waited, 1, std::max(wait, 0)) == 0 && relay_->wait_ms() > left.count()) return;
      relay_->run();
    }
  }
  // Whether nothing is left to do: else the listener's thread would go round and round.
  bool comes_to_rest() {
    pollfd waited{relay_->handle(), POLLIN, 0};
    for (int i = 0; i < 100; ++i) {
      if (::poll(&waited, 1, 0) == 0) return true;
      relay_->run();
    }
    return false;
  }
  template <class Condition>
  bool run_until(Condition condition) {
    const auto end = steady_clock::now() + seconds(20);
    while (!condition()) {
      if (steady_clock::now() > end) return false;
      run(milliseconds(20));
    }
    return true;
  }

  std::unique_ptr<ControlRelay> relay_;
  End server_;
};

TEST_F(ControlRelayTest, BytesGoBothWaysAndSoDoesTheEnd) {
  End client = admit(kUser);
  const std::string sent = kPreface + frame(4, 0, 0) + frame(0, 0, 1, 1000);
  ASSERT_EQ(client.send(sent), sent.size());
  run();
  EXPECT_EQ(server_.receive(), sent);
  EXPECT_FALSE(server_.is_at_end());
  client.end_sending();
  run();
  EXPECT_EQ(server_.receive(), "");
  EXPECT_TRUE(server_.is_at_end());
  EXPECT_TRUE(comes_to_rest());
  const std::string answer = frame(1, 4, 1, 20);
  ASSERT_EQ(server_.send(answer), answer.size());
  run();
  EXPECT_EQ(client.receive(), answer) << "who sends no more still gets its answer";
  EXPECT_FALSE(client.is_at_end());
  ASSERT_EQ(server_.send(answer), answer.size());
  server_.close();
  EXPECT_TRUE(run_until([this] { return relay_->is_empty(); }));
  EXPECT_EQ(client.receive(), answer) << "what was written before the end";
  EXPECT_TRUE(client.is_at_end());
}

TEST_F(ControlRelayTest, ClientThatGoesAwayEndsBoth) {
  End client = admit(kUser);
  ASSERT_EQ(client.send(kPreface), kPreface.size());
  run();
  client.close();
  run();
  EXPECT_EQ(server_.receive(), kPreface);
  EXPECT_TRUE(server_.is_at_end());
  ASSERT_NE(server_.send(frame(4, 0, 0)), 0u);
  EXPECT_TRUE(run_until([this] { return relay_->is_empty(); }));
  EXPECT_EQ(relay_->connected(), "no client");
}

// It holds little of what a client does not read, and loses none of it.
TEST_F(ControlRelayTest, SlowReaderGetsEverything) {
  for (const bool is_up : {false, true}) {
    SCOPED_TRACE(is_up);
    start(is_up);  // without frames to count, upwards
    End client = admit(kUser);
    End& from = is_up ? client : server_;
    End& to = is_up ? server_ : client;
    std::string sent;
    if (!is_up) {
      ASSERT_EQ(client.send(kPreface), kPreface.size());
    }
    size_t idle = 0;
    while (idle < 3 && sent.size() < (100u << 10)) {
      std::string piece(10'000, 'x');
      for (size_t i = 0; i < piece.size(); ++i) {
        const size_t at = sent.size() + i;  // no part of it is like another
        piece[i] = static_cast<char>(at % 4 == 3 ? at >> 18 : at >> 2 >> at % 4 * 8);
      }
      const size_t took = from.send(piece);
      sent += piece.substr(0, took);
      idle = took == 0 ? idle + 1 : 0;
      run(milliseconds(5));
    }
    if (idle != 0) {
      EXPECT_TRUE(comes_to_rest()) << "until the reader takes something";
    }
    std::string came;
    EXPECT_TRUE(run_until([&] {
      came += to.receive();
      return came.size() >= sent.size();
    }));
    EXPECT_TRUE(came == sent) << came.size() << " of " << sent.size();
  }
}

TEST_F(ControlRelayTest, ClosesConnectionsThatAreNotHttp2) {
  End client = admit(kUser);
  ASSERT_NE(client.send("GET / HTTP/1.1\r\n"), 0u);
  EXPECT_TRUE(run_until([this] { return relay_->is_empty(); }));
  (void)client.receive();
  EXPECT_TRUE(client.is_at_end());
  EXPECT_EQ(server_.receive(), "") << "nothing of it is handed on";
}

TEST_F(ControlRelayTest, AddressesAndUsersHaveConnectionLimits) {
  const std::pair<Principal, size_t> shares[] = {
      {address(9), kMaxControlConnectionsPerAddress},
      {kUser, kMaxControlConnectionsPerPrincipal},
      {{Principal::Kind::kCertificate, "3f"}, kMaxControlConnectionsPerPrincipal},
  };
  for (const auto& [who, limit] : shares) {
    SCOPED_TRACE(describe(who));
    start(false);
    std::vector<End> clients;
    std::vector<End> servers;
    for (size_t i = 0; i < limit; ++i) {
      clients.push_back(admit(who));
      servers.push_back(std::move(server_));
    }
    Status refused;
    End beyond = admit(who, &refused);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.code(), Code::kLimit);
    EXPECT_THAT(refused.error().message,
                HasSubstr("more than " + std::to_string(limit) + " connections of one " +
                          (who.kind == Principal::Kind::kAddress ? "address" : "user")));
    EXPECT_EQ(beyond.receive(), "");
    EXPECT_TRUE(beyond.is_at_end());
    const End of_another = admit(Principal::of_uid(4711));
    servers.pop_back();  // one ends
    EXPECT_TRUE(run_until([&] {
      return relay_->connected().find("(" + std::to_string(limit - 1) + ")") != std::string::npos;
    }));
    const End again = admit(who);
  }
}

TEST_F(ControlRelayTest, AllTogetherHaveALimit) {
  const auto end_at_once = [](int handle) { ::close(handle); };
  const End refused[] = {refuse("no"), refuse("no")};  // these take no one's place
  Status last;
  size_t admitted = 0;
  for (; admitted <= kMaxControlConnections; ++admitted) {
    const auto [client, accepted] = connection();
    last = relay_->admit(accepted, address(static_cast<int>(admitted / 60)), end_at_once);
    if (!last.ok()) break;
  }
  if (last.code() == Code::kExhausted) GTEST_SKIP() << last.error().message;
  EXPECT_EQ(admitted, kMaxControlConnections);
  EXPECT_EQ(last.code(), Code::kLimit);
  EXPECT_EQ(last.error().message, "more than 1024 connections");
}

// Calls and pings are charged to the connection and to its principal. It is read again when either
// has an allowance.
TEST_F(ControlRelayTest, FloodIsReadAtItsPace) {
  End client = admit(kUser);
  ASSERT_EQ(client.send(kPreface), kPreface.size());
  const std::string ping = frame(6, 0, 0, 8);
  std::string pings;
  for (int i = 0; i < 2'000; ++i) pings += ping;
  size_t sent = 0;
  size_t came = 0;
  const auto begun = steady_clock::now();
  const auto pump = [&] {
    sent += client.send(pings.substr(sent));
    run(milliseconds(10));
    came += server_.receive().size();
  };
  while (steady_clock::now() < begun + milliseconds(200)) pump();
  EXPECT_TRUE(comes_to_rest()) << "though its client has more to say";
  const double pings_came = static_cast<double>(came - kPreface.size()) / double(ping.size());
  const double passed = std::chrono::duration<double>(steady_clock::now() - begun).count();
  EXPECT_GE(pings_came, kCallsAtOnce);
  // The most that is taken beyond an allowance is what is read at once.
  EXPECT_LE(pings_came, kCallsAtOnce + passed * kCallsPerSecond + kOwnCallsAtOnce +
                            2.0 * double(kRequestBytes) / double(ping.size()));
  while (came < kPreface.size() + pings.size()) {
    ASSERT_LT(steady_clock::now(), begun + seconds(20));
    pump();
  }
  EXPECT_GE(steady_clock::now() - begun, milliseconds(700)) << "2,000 at 1,000 and 1,000 a second";
}

// Another connection of the same user continues, with what it has for itself.
TEST_F(ControlRelayTest, FloodDoesNotStopTheUsersOtherConnections) {
  End flood = admit(kUser);
  const End flooded = std::move(server_);
  std::string pings = kPreface;
  for (int i = 0; i < 1'500; ++i) pings += frame(6, 0, 0, 8);
  size_t sent = 0;
  for (int round = 0; round < 20; ++round) {
    sent += flood.send(pings.substr(sent));
    run(milliseconds(2));
    char some[65536];
    (void)::recv(flooded.fd(), some, sizeof some, MSG_DONTWAIT);
  }
  End calm = admit(kUser);
  const std::string call = kPreface + frame(1, 5, 1, 30);
  ASSERT_EQ(calm.send(call), call.size());
  std::string came;
  EXPECT_TRUE(run_until([&] {
    came += server_.receive();
    return came.size() == call.size();
  }));
  EXPECT_EQ(came, call);
}

// Within TLS bytes are counted, and what the client was sent gives it more.
TEST_F(ControlRelayTest, BytesWithinTlsAreReadAtTheirPace) {
  start(true);
  End client = admit(kUser);
  const std::string flood(256u << 10, 'x');
  size_t sent = 0;
  size_t came = 0;
  const auto begun = steady_clock::now();
  const auto pump = [&](size_t until) {
    const auto end = steady_clock::now() + milliseconds(300);
    while (steady_clock::now() < end && came < until) {
      sent += client.send(flood.substr(sent, flood.size() - sent));
      run(milliseconds(5));
      came += server_.receive().size();
    }
  };
  pump(flood.size());
  const double passed = std::chrono::duration<double>(steady_clock::now() - begun).count();
  EXPECT_GE(double(came), kTlsBytesAtOnce);
  EXPECT_LE(double(came), kTlsBytesAtOnce + kOwnTlsBytesAtOnce + passed * kTlsBytesPerSecond +
                              2 * double(kRequestBytes));
  const size_t before = came;
  const std::string answer(10'000, 'y');
  for (size_t answered = 0; answered < (2u << 20);) {
    answered += server_.send(answer);
    run(milliseconds(1));
    (void)client.receive();
  }
  pump(before + (48u << 10));
  EXPECT_GE(came, before + (48u << 10)) << "2 MiB downwards give 64 KiB upwards";
}

TEST_F(ControlRelayTest, AnswersEachRefusedCallWithTheReason) {
  End client = refuse("not you");
  run();
  EXPECT_EQ(client.receive(), frame(4, 0, 0)) << "SETTINGS come first";
  ASSERT_NE(client.send(kPreface + frame(1, 5, 1, 30)), 0u);
  run();
  EXPECT_THAT(client.receive(), HasSubstr("not you"));
  ASSERT_NE(client.send(frame(1, 5, 3, 30)), 0u);
  run();
  EXPECT_THAT(client.receive(), HasSubstr("not you"));
  EXPECT_FALSE(client.is_at_end());
  EXPECT_EQ(relay_->connected(), "no client") << "it is not let in";
  EXPECT_FALSE(relay_->is_empty());
  client.close();
  EXPECT_TRUE(run_until([this] { return relay_->is_empty(); }));
}

TEST_F(ControlRelayTest, ClosesARefusedClientThatSpeaksNoHttp2) {
  End client = refuse("not you");
  run();
  ASSERT_NE(client.send("GET / HTTP/1.1\r\n"), 0u);
  pollfd waited{relay_->handle(), POLLIN, 0};
  ASSERT_EQ(::poll(&waited, 1, 20'000), 1);
  relay_->run();
  EXPECT_TRUE(relay_->is_empty());
}

TEST_F(ControlRelayTest, RefusedOnesHaveTheirLimitAndTheirTime) {
  std::vector<End> refused;
  const auto begun = steady_clock::now();
  for (size_t i = 0; i < kMaxRefusedConnections; ++i) refused.push_back(refuse("no"));
  End beyond = refuse("no");
  EXPECT_EQ(beyond.receive(), "");
  EXPECT_TRUE(beyond.is_at_end()) << "closed at once";
  EXPECT_LE(relay_->wait_ms(), 3'001);
  // They take no one's place.
  const End user = admit(kUser);
  EXPECT_TRUE(run_until([&] {
    (void)refused.back().receive();
    return refused.back().is_at_end();
  }));
  EXPECT_GE(steady_clock::now() - begun, kRefusedDeadline);
  EXPECT_EQ(relay_->connected(), "user 1000 (1)");
  End again = refuse("no");
  run();
  EXPECT_EQ(again.receive(), frame(4, 0, 0)) << "there is room again";
}

// CONTROL.md "Limits", and what each connection has of that for itself.
TEST(ControlRates, AreThoseOfTheTable) {
  struct Rate {
    bool is_tls, is_own;
    double at_once, per_second;
  };
  for (const Rate& rate : {Rate{false, false, 1'000, 1'000}, Rate{false, true, 10, 20},
                           Rate{true, false, 131'072, 65'536}, Rate{true, true, 8'192, 4'096}}) {
    SCOPED_TRACE(rate.at_once);
    const CallRate::Time start{};
    CallRate fresh = fresh_rate(rate.is_tls, rate.is_own, start);
    fresh.take(rate.at_once, start);
    EXPECT_EQ(fresh.free_at(start), start) << "all of it at once";
    fresh.take(rate.per_second, start);
    EXPECT_EQ(fresh.free_at(start), start + seconds(1));
  }
}

TEST_F(ControlRelayTest, ClosesAllDescriptorsAtTheEnd) {
  const auto open_descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  };
  relay_.reset();
  const auto before = open_descriptors();
  start(false);
  {
    const End user = admit(kUser);
    const End of_user = std::move(server_);
    const End refused = refuse("no");
    relay_.reset();
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(ControlRelayTest, WithinTlsARefusalIsTheEnd) {
  start(true);
  End client = refuse("no");
  EXPECT_EQ(client.receive(), "");
  EXPECT_TRUE(client.is_at_end());
  EXPECT_TRUE(relay_->is_empty());
}

TEST_F(ControlRelayTest, SaysWhoIsConnectedThoseWithMostFirst) {
  EXPECT_EQ(relay_->connected(), "no client");
  std::vector<End> ends;
  const auto enter = [&](const Principal& who, int times) {
    for (int i = 0; i < times; ++i) {
      ends.push_back(admit(who));
      ends.push_back(std::move(server_));
    }
  };
  enter(address(9), 1);
  enter(kUser, 3);
  EXPECT_EQ(relay_->connected(), "user 1000 (3), 192.0.2.9 (1)");
  enter({}, 2);
  enter({Principal::Kind::kCertificate, "0123456789abcdef0123456789abcdef"}, 4);
  enter(address(8), 5);
  EXPECT_EQ(relay_->connected(),
            "192.0.2.8 (5), certificate 0123456789abcdef (4), user 1000 (3), an unknown user (2), "
            "192.0.2.9 (1)");
  enter(address(7), 6);
  EXPECT_EQ(relay_->connected(),
            "192.0.2.7 (6), 192.0.2.8 (5), certificate 0123456789abcdef (4), user 1000 (3), an "
            "unknown user (2) and 1 more");
}

TEST_F(ControlRelayTest, KnowsWhoseConnectionGrpcSpeaksOf) {
  const End user = admit(kUser);
  const End of_user = std::move(server_);
  const End other = admit(address(9));
  // The name of the other end, as gRPC writes it.
  const auto peer_of = [](const End& end) {
    sockaddr_un name{};
    socklen_t bytes = sizeof name;
    EXPECT_EQ(::getpeername(end.fd(), reinterpret_cast<sockaddr*>(&name), &bytes), 0);
    return "unix-abstract:" +
           std::string(name.sun_path + 1, bytes - offsetof(sockaddr_un, sun_path) - 1);
  };
  EXPECT_EQ(relay_->principal_of(peer_of(of_user)), kUser);
  EXPECT_EQ(relay_->principal_of(peer_of(server_)), address(9));
  EXPECT_EQ(relay_->principal_of("unix-abstract:unknown"), Principal{});
  EXPECT_EQ(relay_->principal_of(""), Principal{});
}

}  // namespace
}  // namespace collect::control
