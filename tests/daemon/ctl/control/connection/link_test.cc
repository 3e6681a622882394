// The connection to a collector: how it is made, made again and ended, what is refused, and what is
// said when it does not come to be.
#include <dirent.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "daemon/ctl/control/connection/client.h"
#include "daemon/ctl/control/connection/plain_connection.h"
#include "daemon/ctl/control/download.h"
#include "daemon/ctl/control/grpc/credentials.h"
#include "daemon/ctl/control/messages/message_json.h"
#include "daemon/ctl/control/output.h"
#include "daemon/ctl/control/session_conversion.h"
#include "tests/daemon/ctl/control/fixture.h"
#include "tests/fakes/machine/foreign_listener.h"

namespace collect::ctl {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

size_t open_descriptors() {
  size_t count = 0;
  DIR* const all = ::opendir("/proc/self/fd");
  while (::readdir(all) != nullptr) ++count;
  ::closedir(all);
  return count;
}

bool eventually_open(size_t count) {
  for (int i = 0; i < 2000 && open_descriptors() != count; ++i) ::usleep(5000);
  return open_descriptors() == count;
}

// A socket that takes connections and never answers.
class Listener {
 public:
  Listener() {
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(fd_, 8), 0);
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
  }
  ~Listener() { ::close(fd_); }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  int fd_ = -1;
  uint16_t port_ = 0;
};

class OnlineLink : public OnlineTest {
 protected:
  OnlineLink() {
    std::string pattern = fs::temp_directory_path() / "online_link_XXXXXX";
    directory_ = fs::canonical(::mkdtemp(pattern.data()));
  }
  ~OnlineLink() override { fs::remove_all(directory_); }

  std::string put(const std::string& name, const std::string& text) {
    std::ofstream(directory_ / name, std::ios::binary) << text;
    return directory_ / name;
  }

  fs::path directory_;
};

// ---- plain connections

TEST_F(OnlineLink, IsClosedWithItsClient) {
  {
    Client first(online_.control);  // gRPC keeps some descriptors from its first use on
    ASSERT_TRUE(first.stats().ok());
  }
  // Of the server, too, the end is seen a little later.
  ::usleep(100'000);
  const size_t before = open_descriptors();
  for (int i = 0; i < 20; ++i) {
    Client client(online_.control);
    ASSERT_TRUE(client.stats().ok());
    ASSERT_TRUE(client.stats().ok()) << "on the same connection";
  }
  EXPECT_TRUE(eventually_open(before)) << before << " " << open_descriptors();
}

TEST_F(OnlineLink, IsMadeAgainAfterItsEnd) {
  Client client(online_.control);
  EXPECT_EQ(client.address(), online_.control.address);
  ASSERT_TRUE(client.stats().ok());
  const std::string address = server_->address();
  server_.reset();
  const auto absent = client.stats();
  ASSERT_FALSE(absent.ok());
  EXPECT_EQ(absent.code(), Code::kUnavailable);
  auto started = control::ControlServer::start(address, collector_);
  ASSERT_TRUE(started.ok()) << to_string(started.error());
  EXPECT_TRUE(client.stats().ok());
}

TEST_F(OnlineLink, NamesTheAddressWhenNoCollectorAnswers) {
  const auto said = [](const std::string& address) {
    const auto answer = Client(ControlTarget(address)).stats();
    EXPECT_FALSE(answer.ok());
    return answer.ok() ? "" : answer.error().message;
  };
  const auto no_collector = [](const std::string& address) {
    return "no collector answers at " + address +
           "; start collectord, or name its address with --control";
  };
  EXPECT_EQ(said("127.0.0.1:1"), no_collector("127.0.0.1:1"));
  EXPECT_EQ(said("unix:/none/control.sock"), no_collector("unix:/none/control.sock"));
  EXPECT_EQ(said("abstract:control"), no_collector("abstract:control"));
  EXPECT_FALSE(said("nonsense").starts_with("no collector"));
}

TEST_F(OnlineLink, UnixSocketIsPlainWithAnyTlsOptions) {
  const std::string address = "unix:" + (directory_ / "control.sock").string();
  auto started = control::ControlServer::start(address, collector_);
  ASSERT_TRUE(started.ok()) << to_string(started.error());
  EXPECT_TRUE(Client(ControlTarget(address)).stats().ok());
  ControlTarget with_tls(address);
  with_tls.tls_ca = "none.pem";
  with_tls.token_file = "none";
  with_tls.tls_certificate = "none";
  EXPECT_TRUE(Client(with_tls).stats().ok());
  const auto connected = connect_plain(address);
  ASSERT_TRUE(connected.ok());
  EXPECT_FALSE(has_ended(*connected));
  EXPECT_NE(::fcntl(*connected, F_GETFL) & O_NONBLOCK, 0);
  EXPECT_NE(::fcntl(*connected, F_GETFD) & FD_CLOEXEC, 0);
  started->reset();
  for (int i = 0; i < 2000 && !has_ended(*connected); ++i) ::usleep(5000);
  EXPECT_TRUE(has_ended(*connected));
  ::close(*connected);
}

// Someone else's socket gets nothing to read.
TEST_F(OnlineLink, AnotherUsersSocketIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const fakes::ForeignListener squatter(fakes::tcp4(INADDR_LOOPBACK, 0));
  const std::string address = "127.0.0.1:" + std::to_string(squatter.port());
  const size_t before = open_descriptors();
  const auto refused = connect_plain(address);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.code(), Code::kPermission);
  EXPECT_THAT(refused.error().message, StartsWith(address + " "));
  EXPECT_THAT(refused.error().message,
              EndsWith(": nothing was sent; name the collector's own socket with --control "
                       "unix:/path, or use TLS"));
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_EQ(Client(ControlTarget(address)).stats().code(), Code::kPermission);
  EXPECT_EQ(squatter.bytes(), 0u);
}

TEST_F(OnlineLink, CollectorThatIsSilentIsNotWaitedForLong) {
  const Listener silent;
  Client client{ControlTarget(silent.address())};
  const auto answer = client.stats(milliseconds(100));
  EXPECT_EQ(answer.code(), Code::kUnavailable);
  EXPECT_EQ(answer.error().message,
            "the collector at " + silent.address() + " did not answer in time");
}

TEST_F(OnlineLink, WatchEndsWhenItIsWantedNoMore) {
  collector_.add_agent("1", "lua", api::AGENT_STATE_RECORDING);
  collector_.add_session("one", api::SESSION_STATE_ACTIVE);
  api::Device device;
  device.set_name("devices/A");
  device.set_serial("A");
  collector_.change_device(api::CHANGE_KIND_ADDED, device);
  Client client(online_.control);
  int seen = 0;
  EXPECT_TRUE(client.watch_agents("", [&](const auto&) { return ++seen == 0; }).ok());
  EXPECT_EQ(seen, 1);
  EXPECT_TRUE(client.watch_devices("", [&](const auto&) { return ++seen == 0; }).ok());
  EXPECT_EQ(seen, 2);
  EXPECT_TRUE(
      client.watch_session("", milliseconds(2250), [&](const auto&) { return ++seen == 0; }).ok());
  EXPECT_EQ(seen, 3);
  EXPECT_EQ(collector_.last_interval_ms(), 2250u);
}

// gRPC takes four megabytes by default.
TEST_F(OnlineLink, LargeAnswersAreTaken) {
  api::Agent agent;
  agent.set_status(std::string(7'000, 's'));
  for (int i = 0; i < 1000; ++i) {
    agent.set_name("agents/" + std::to_string(i));
    collector_.change_agent(api::CHANGE_KIND_ADDED, agent);
  }
  const auto agents = Client(online_.control).agents("");
  ASSERT_TRUE(agents.ok()) << to_string(agents.error());
  EXPECT_EQ(agents->size(), 1000u);
}

TEST_F(OnlineLink, PagesOfAgentsAndFiles) {
  for (int i = 0; i < 1003; ++i) {
    collector_.add_agent(std::to_string(i), "lua", api::AGENT_STATE_GONE);
    collector_.add_file("thread_" + std::to_string(i) + "/index.atf", "x");
  }
  collector_.add_session("one", api::SESSION_STATE_COMPLETE);
  Client client(online_.control);
  const auto agents = client.agents("");
  ASSERT_TRUE(agents.ok());
  EXPECT_EQ(agents->size(), 1003u);
  EXPECT_EQ(agents->back().name(), "agents/1002");
  const auto files = client.files("");
  ASSERT_TRUE(files.ok());
  EXPECT_EQ(files->files_size(), 1003);
  EXPECT_EQ(files->session(), "sessions/one");
  EXPECT_EQ(files->next_page_token(), "");
}

// ---- certificates and tokens

TEST_F(OnlineLink, ReportsUnusableTlsOptions) {
  const auto said = [](const std::function<void(ControlTarget&)>& set) {
    ControlTarget target("127.0.0.1:1");
    set(target);
    const auto made = channel_credentials(target);
    return made.ok() ? std::string(*made == nullptr ? "none" : "some") : made.error().message;
  };
  const std::string pem = put("some.pem", "no certificate");
  EXPECT_EQ(said([](auto&) {}), "none");
  EXPECT_EQ(said([](auto& to) { to.tls_name = "x"; }), "none");
  const std::string within =
      "a token or a certificate is sent over TLS only: give --tls-ca FILE, the CA certificate that "
      "signed the collector's";
  EXPECT_EQ(said([](auto& to) { to.token_file = "x"; }), within);
  EXPECT_EQ(said([](auto& to) { to.tls_certificate = "x"; }), within);
  const std::string together = "--tls-certificate and --tls-key belong together";
  EXPECT_EQ(said([&](auto& to) { to.tls_ca = pem, to.tls_certificate = pem; }), together);
  EXPECT_EQ(said([&](auto& to) { to.tls_ca = pem, to.tls_key = pem; }), together);
  const std::string none = directory_ / "none";
  EXPECT_THAT(said([&](auto& to) { to.tls_ca = none; }), StartsWith("--tls-ca: " + none));
  EXPECT_THAT(said([&](auto& to) { to.tls_ca = pem, to.tls_certificate = none, to.tls_key = pem; }),
              StartsWith("--tls-certificate: " + none));
  EXPECT_THAT(said([&](auto& to) { to.tls_ca = pem, to.tls_certificate = pem, to.tls_key = none; }),
              StartsWith("--tls-key: " + none));
  EXPECT_EQ(said([&](auto& to) { to.tls_ca = pem; }), "some");
  EXPECT_THAT(said([&](auto& to) { to.tls_ca = pem, to.token_file = none; }),
              StartsWith("--token-file: " + none));
  const std::string token = put("token", "secret\n");
  EXPECT_EQ(said([&](auto& to) { to.tls_ca = pem, to.token_file = token; }), "some");
  EXPECT_THAT(said([&](auto& to) { to.tls_ca = put("empty", ""); }),
              StartsWith("--tls-ca: " + (directory_ / "empty").string()));
  EXPECT_EQ(said([&](auto& to) { to.address = "unix:/x", to.tls_ca = none, to.token_file = none; }),
            "none");
  // A call says the same.
  ControlTarget target("127.0.0.1:1");
  target.token_file = token;
  EXPECT_EQ(Client(target).stats().error().message, within);
}

TEST_F(OnlineLink, EachRefusalOfTlsHasItsAdvice) {
  ControlTarget plain("x:1");
  const std::string no_plain = "something answers but speaks no plain gRPC";
  EXPECT_THAT(tls_advice(plain, "Socket closed"), StartsWith(no_plain));
  EXPECT_THAT(tls_advice(plain, "Connection reset by peer"), StartsWith(no_plain));
  EXPECT_THAT(tls_advice(plain, "GOAWAY received"), StartsWith(no_plain));
  EXPECT_EQ(tls_advice(plain, "Connection refused"), "");
  ControlTarget target("x:1");
  target.tls_ca = "ca.pem";
  const auto advice = [&](const char* reason) { return tls_advice(target, reason); };
  const std::string signed_by =
      "its certificate is not signed by ca.pem, or is out of date; --tls-ca FILE is the CA "
      "certificate that signed it";
  EXPECT_EQ(advice("SSL: CERTIFICATE_VERIFY_FAILED"), signed_by);
  EXPECT_EQ(advice("certificate verify failed: self-signed"), signed_by);
  const std::string name = "its certificate is for another name; --tls-name NAME says which";
  EXPECT_EQ(advice("Hostname Verification Check failed."), name);
  EXPECT_EQ(advice("Peer name x is not in peer"), name);
  EXPECT_EQ(advice("x is not in peer certificate"), name);
  const std::string no_tls = "it speaks no TLS there; leave --tls-ca out";
  EXPECT_EQ(advice("ssl: wrong version number"), no_tls);
  EXPECT_EQ(advice("WRONG_VERSION_NUMBER"), no_tls);
  const std::string ends =
      "it ends the connection; if it asks for a client certificate, show one "
      "with --tls-certificate FILE --tls-key FILE";
  for (const char* reason : {"tlsv13 alert certificate required", "Socket closed", "reset by peer",
                             "handshake failed"}) {
    EXPECT_EQ(advice(reason), ends) << reason;
  }
  target.tls_certificate = "own.pem";
  EXPECT_EQ(advice("Socket closed"),
            "it ends the connection; perhaps it does not trust the CA that signed own.pem, or "
            "that is out of date");
  EXPECT_EQ(advice("Connection refused"), "");
}

TEST_F(OnlineLink, VariablesFillWhatIsNotGiven) {
  const std::pair<const char*, std::string ControlTarget::*> fields[] = {
      {"COLLECT_CONTROL_TLS_CA", &ControlTarget::tls_ca},
      {"COLLECT_CONTROL_TLS_CERTIFICATE", &ControlTarget::tls_certificate},
      {"COLLECT_CONTROL_TLS_KEY", &ControlTarget::tls_key},
      {"COLLECT_CONTROL_TLS_NAME", &ControlTarget::tls_name},
      {"COLLECT_CONTROL_TOKEN_FILE", &ControlTarget::token_file}};
  for (const auto& [variable, field] : fields) ::setenv(variable, variable, 1);
  ControlTarget empty;
  add_from_environment(empty);
  for (const auto& [variable, field] : fields) EXPECT_EQ(empty.*field, variable);
  EXPECT_EQ(empty.address, "");
  ControlTarget given;
  for (const auto& [variable, field] : fields) given.*field = "given";
  add_from_environment(given);
  for (const auto& [variable, field] : fields) EXPECT_EQ(given.*field, "given") << variable;
  for (const auto& [variable, field] : fields) ::unsetenv(variable);
  ControlTarget without;
  add_from_environment(without);
  for (const auto& [variable, field] : fields) EXPECT_EQ(without.*field, "") << variable;
}

// ---- texts

class Terminal : public OnlineLink {
 protected:
  Online terminal(bool as_json = false) { return {server_->address(), as_json, true, out_, err_}; }
  static constexpr char kRestart[] = "\r\x1b[K";
};

// One line is written again and again; JSON stays lines.
TEST_F(Terminal, WatchIsOneLine) {
  collector_.add_session("one", api::SESSION_STATE_ACTIVE);
  const auto live = [this] {
    collector_.wait_for_watches(1);
    api::Session session = *collector_.session("");
    session.set_threads(1);
    collector_.change_session(session, false);
    session.set_state(api::SESSION_STATE_COMPLETE);
    session.set_threads(2);
    session.set_losses_known(true);
    collector_.change_session(session, true);
  };
  std::thread life(live);
  EXPECT_EQ(watch(terminal(), {}), 0);
  life.join();
  const std::string text = out_.str();
  EXPECT_THAT(text, StartsWith(std::string(kRestart) + "one  recording  "));
  EXPECT_THAT(text, EndsWith(std::string(kRestart) +
                             "one  complete  0 ms  0 events  2 threads  0 detail (off)  0 B  lost "
                             "0\nfiles: /data/one\n"));
  collector_.add_session("two", api::SESSION_STATE_ACTIVE);
  out_.str("");
  std::thread again([this] {
    collector_.wait_for_watches(1);
    api::Session session = *collector_.session("");
    session.set_state(api::SESSION_STATE_COMPLETE);
    collector_.change_session(session, true);
  });
  EXPECT_EQ(watch(terminal(true), {}), 0);
  again.join();
  EXPECT_THAT(out_.str(), StartsWith("{\"version\":1,\"name\":\"sessions/two\""));
  EXPECT_THAT(out_.str(), EndsWith("}\n"));
}

TEST_F(Terminal, DownloadSaysHowFarItIs) {
  const std::string name = "session_20260131_235959/pid_7";
  collector_.add_session(name, api::SESSION_STATE_COMPLETE);
  collector_.add_file("manifest.json", "{}");
  collector_.add_file("thread_0/index.atf", std::string(1'000, 'x'));
  const std::string copy = (directory_ / "copy").string();
  EXPECT_EQ(download(terminal(), {"", {}, copy}), 0);
  EXPECT_EQ(err_.str(), std::string(kRestart) + "thread_0/index.atf  1.0 kB of 1.0 kB\n");
  EXPECT_EQ(out_.str(), copy + ": 2 files, 1.0 kB\n");
  err_.str("");
  EXPECT_EQ(download(terminal(true), {"", {}, copy + "2"}), 0);
  EXPECT_EQ(err_.str(), "");
  // A line of its own for what is said then.
  collector_.add_file("thread_0/index.atf", std::string(700'000, 'x'));
  collector_.cut_files_at(600'000);
  EXPECT_EQ(download(terminal(), {"", {}, copy + "3"}), 1);
  EXPECT_THAT(err_.str(), StartsWith(std::string(kRestart) + "thread_0/index.atf  "));
  EXPECT_THAT(err_.str(), HasSubstr(" of 700 kB\ncollectctl: "));
}

TEST_F(Terminal, ConversionSaysHowFarItIs) {
  collector_.hold_answers();
  std::thread life([this] {
    collector_.wait_for_held(1);
    EXPECT_TRUE(collector_.convert_to(1, 4));
    collector_.release_all();
  });
  EXPECT_EQ(convert_session(terminal(), {"one", 1}), 1);
  life.join();
  EXPECT_THAT(err_.str(), StartsWith(std::string(kRestart) + "converting 25 %" + kRestart));
  EXPECT_THAT(err_.str(), HasSubstr(std::string(kRestart) + "collectctl: missing: 7 thread_1"));
}

}  // namespace
}  // namespace collect::ctl
