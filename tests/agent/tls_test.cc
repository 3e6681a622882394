// The agent's side of TLS against OpenSSL's own server. The agent's OpenSSL takes its memory from
// an arena, which it can only arrange before the first use in a process: so certificates, server
// and client each run in a child process, and this one uses no OpenSSL.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <optional>

#include "agent/transport/socket.h"
#include "agent/transport/tls.h"
#include "agent/transport/tls_arena.h"
#include "tests/agent/tls_fixture.h"

namespace collect::agent {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST_F(TlsTest, CarriesBytesBothWays) {
  const std::string sent = pattern(0, 300'000);
  Server server({}, [&](SSL* ssl, int) {
    const std::string got = read_bytes(ssl, sent.size());
    EXPECT_TRUE(got == sent) << got.size();
    for (size_t at = 0; at < got.size();) {
      const int count = SSL_write(ssl, got.data() + at, static_cast<int>(got.size() - at));
      ASSERT_GT(count, 0);
      at += static_cast<size_t>(count);
    }
    EXPECT_STREQ(SSL_get_version(ssl), "TLSv1.3");
    EXPECT_EQ(SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name), nullptr) << "a number";
    SSL_shutdown(ssl);
  });
  EXPECT_EQ(in_child([&] {
              prepare("127.0.0.1");
              EXPECT_GT(tls_arena_used(), 0u);
              Client client(server.port());
              client.send_all(sent);
              EXPECT_TRUE(client.receive_bytes(sent.size()) == sent);
              EXPECT_EQ(client.receive_end().status, IoStatus::kEnd);
              EXPECT_STREQ(client.socket.fault_or("none"), "none");
              client.socket.close();
            }),
            0);
  EXPECT_EQ(server.wait(), 0);
}

// What was taken arrives once and in order, for any bytes of the caller's next call.
TEST_F(TlsTest, DeliversTakenBytesToASlowServer) {
  Signal go_on;
  Server server({}, [&](SSL* ssl, int) {
    go_on.wait();
    std::string got = read_bytes(ssl, SIZE_MAX);
    EXPECT_GT(got.size(), 50'000u);
    EXPECT_TRUE(got == pattern(0, got.size()));
    EXPECT_TRUE(got.ends_with(pattern(got.size() - 10, 10)));
  });
  EXPECT_EQ(in_child([&] {
              prepare("127.0.0.1");
              Client client(server.port());
              size_t taken = client.send_all(pattern(0, 10));
              IoResult result{IoStatus::kDone};
              while (result.status == IoStatus::kDone) {
                const std::string next = pattern(taken, 100'000);
                result = client.send(next);
                taken += result.bytes;
                ASSERT_LT(taken, size_t{1} << 30);
              }
              EXPECT_EQ(result.status, IoStatus::kAgain);
              EXPECT_EQ(result.bytes, 0u);
              EXPECT_EQ(client.socket.poll_events(POLLIN), POLLIN | POLLOUT) << "more is to go out";
              uint8_t byte = 0;
              EXPECT_EQ(client.socket.receive(&byte, 1).status, IoStatus::kAgain);
              go_on.give();
              taken += client.send_all(pattern(taken, 20'000));
              // The rest goes out with the next call.
              while (client.socket.poll_events(POLLIN) != POLLIN) {
                client.wait(POLLIN);
                (void)client.socket.receive(&byte, 1);
              }
              client.socket.close();
            }),
            0);
  EXPECT_EQ(server.wait(), 0);
}

TEST_F(TlsTest, PollsForTheHandshakeFirst) {
  Signal go_on;
  ServerOptions options;
  options.before = [&] { go_on.wait(); };
  Server server(options, [&](SSL* ssl, int) {
    EXPECT_STREQ(SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name), "localhost");
    EXPECT_EQ(read_bytes(ssl, 2), "ab");
  });
  EXPECT_EQ(in_child([&] {
              prepare("localhost");
              Client client(server.port());
              EXPECT_EQ(client.socket.poll_events(POLLOUT), POLLIN);
              uint8_t byte = 0;
              EXPECT_EQ(client.socket.receive(&byte, 1).status, IoStatus::kAgain);
              EXPECT_EQ(client.send("ab").status, IoStatus::kAgain) << "no handshake yet";
              EXPECT_EQ(client.socket.poll_events(POLLOUT), POLLIN);
              EXPECT_EQ(client.socket.poll_events(POLLIN), POLLIN);
              go_on.give();
              client.send_all("ab");
              EXPECT_EQ(client.socket.poll_events(POLLOUT), POLLOUT);
              EXPECT_EQ(client.socket.poll_events(POLLIN), POLLIN);
              client.receive_end();
              client.socket.close();
            }),
            0);
  EXPECT_EQ(server.wait(), 0);
}

TEST_F(TlsTest, EveryEndOfTheServerIsAnEnd) {
  for (const Ending how : {Ending::kNotified, Ending::kCut, Ending::kReset}) {
    Server server({}, [&](SSL* ssl, int fd) {
      EXPECT_EQ(read_bytes(ssl, 2), "ab");
      EXPECT_EQ(SSL_write(ssl, "yz", 2), 2);
      if (how == Ending::kReset) {
        EXPECT_EQ(read_bytes(ssl, 2), "cd");
      }
      end_by(how, ssl, fd);
    });
    EXPECT_EQ(in_child([&] {
                prepare("127.0.0.1");
                Client client(server.port());
                client.send_all("ab");
                EXPECT_EQ(client.receive_bytes(2), "yz");
                if (how == Ending::kReset) client.send_all("cd");
                EXPECT_EQ(client.receive_end().status, IoStatus::kEnd);
                EXPECT_STREQ(client.socket.fault_or("none"), "none");
                // No SIGPIPE, and no error of its own.
                IoResult result{IoStatus::kDone};
                for (int i = 0; i < 1000 && result.status == IoStatus::kDone; ++i) {
                  result = client.send(pattern(0, 50'000));
                }
                EXPECT_EQ(result.status, IoStatus::kEnd);
                client.socket.close();
              }),
              0)
        << static_cast<int>(how);
    EXPECT_EQ(server.wait(), 0);
  }
}

// Nothing is sent to any of them: the first byte would come after the handshake.
TEST_F(TlsTest, SaysWhyAServerIsRefused) {
  struct Case {
    const char* server;
    const char* host;
    const char* fault;
    int max_version;
  };
  for (const Case& given :
       {Case{"foreign_server", "127.0.0.1", "unable to get local issuer certificate", 0},
        Case{"server", "127.0.0.2", "IP address mismatch", 0},
        Case{"server", "::1", "IP address mismatch", 0},
        Case{"server", "elsewhere.example", "hostname mismatch", 0},
        Case{"expired", "localhost", "certificate has expired", 0},
        Case{"server", "localhost", "alert protocol version", TLS1_2_VERSION}}) {
    ServerOptions options;
    options.certificate = given.server;
    options.max_version = given.max_version;
    options.must_accept = false;
    Server server(options, [](SSL* ssl, int) { EXPECT_EQ(read_bytes(ssl, SIZE_MAX), ""); });
    EXPECT_EQ(in_child([&] {
                prepare(given.host);
                Client client(server.port());
                const IoResult result = client.try_to_send("secret");
                EXPECT_EQ(result.status, IoStatus::kError);
                EXPECT_THAT(client.socket.fault_or("none"), HasSubstr(given.fault));
                client.socket.close();
              }),
              0)
        << given.fault;
    EXPECT_EQ(server.wait(), 0);
  }
}

TEST_F(TlsTest, ReportsAnErrorForPlaintextServers) {
  PlainServer server("HTTP/1.1 400 Bad Request\r\n\r\n");
  EXPECT_EQ(in_child([&] {
              prepare("127.0.0.1");
              Client client(server.port());
              const IoStatus sent = client.send("ab").status;  // its answer may be there already
              EXPECT_TRUE(sent == IoStatus::kAgain || sent == IoStatus::kError);
              const IoResult result = client.receive_end();
              EXPECT_EQ(result.status, IoStatus::kError);
              EXPECT_THAT(client.socket.fault_or("none"), HasSubstr("wrong version number"));
              client.socket.close();
            }),
            0);
}

TEST_F(TlsTest, ShowsItsCertificateAndTheChain) {
  ServerOptions options;
  options.client_ca = path("ca.pem");
  {
    Server server(options, [&](SSL* ssl, int) {
      EXPECT_EQ(SSL_get_verify_result(ssl), X509_V_OK);
      X509* const shown = SSL_get1_peer_certificate(ssl);
      ASSERT_NE(shown, nullptr);
      char name[64] = {};
      X509_NAME_get_text_by_NID(X509_get_subject_name(shown), NID_commonName, name, sizeof name);
      EXPECT_STREQ(name, "phone");
      X509_free(shown);
      // The other two of its file; on this side its own is not among them.
      EXPECT_EQ(sk_X509_num(SSL_get_peer_cert_chain(ssl)), 2);
      EXPECT_EQ(read_bytes(ssl, 2), "ab");
    });
    EXPECT_EQ(in_child([&] {
                prepare("127.0.0.1", path("chain.pem"), path("phone.key"));
                Client client(server.port());
                client.send_all("ab");
                client.receive_end();
                client.socket.close();
              }),
              0);
    EXPECT_EQ(server.wait(), 0);
  }
  options.must_accept = false;
  Server server(options, [](SSL*, int) {});
  EXPECT_EQ(in_child([&] {
              prepare("127.0.0.1");
              Client client(server.port());
              client.try_to_send("ab");
              EXPECT_EQ(client.receive_end().status, IoStatus::kError);
              EXPECT_THAT(client.socket.fault_or("none"), HasSubstr("certificate required"));
              client.socket.close();
            }),
            0);
  EXPECT_EQ(server.wait(), 0);
}

TEST_F(TlsTest, OneSessionForEachChannelAtATime) {
  PlainServer server("");
  EXPECT_EQ(in_child([&] {
              prepare("127.0.0.1");
              std::vector<Client> clients;
              for (size_t i = 0; i < kMaxTlsSessions; ++i) clients.emplace_back(server.port());
              Client third(server.port(), false);
              EXPECT_FALSE(third.socket.start_tls("127.0.0.1"));
              clients[0].socket.close();
              EXPECT_TRUE(third.socket.start_tls("127.0.0.1"));
              const size_t used = tls_arena_used();
              // What a session took is there for the next.
              for (int i = 0; i < 100; ++i) {
                third.socket.close();
                third = Client(server.port());
              }
              EXPECT_LT(tls_arena_used(), used + 64 * 1024);
              third.socket.close();
              clients[1].socket.close();
            }),
            0);
}

TEST_F(TlsTest, SettingsThatCannotBe) {
  EXPECT_EQ(
      in_child([&] {
        const auto fault = [&](const std::string& ca, const std::string& certificate = "",
                               const std::string& key = "") {
          const char* error = tls_prepare({ca.c_str(), certificate.c_str(), key.c_str()});
          return std::string(error == nullptr ? "" : error);
        };
        const std::string ca = path("ca.pem");
        const std::string phone = path("phone.pem");
        const int lowest = open("/dev/null", O_RDONLY | O_CLOEXEC);
        close(lowest);
        EXPECT_THAT(fault(""), StartsWith("COLLECT_TLS_CA must name"));
        EXPECT_THAT(fault(path("none")), StartsWith("COLLECT_TLS_CA can't be read"));
        EXPECT_THAT(fault(path("phone.key")), StartsWith("COLLECT_TLS_CA can't be read"));
        EXPECT_THAT(fault(path("too_long.pem")), StartsWith("COLLECT_TLS_CA can't be read"));
        EXPECT_THAT(fault(path(".")), StartsWith("COLLECT_TLS_CA can't be read"));
        EXPECT_THAT(fault(ca, phone), HasSubstr("belong together"));
        EXPECT_THAT(fault(ca, "", path("phone.key")), HasSubstr("belong together"));
        EXPECT_THAT(fault(ca, path("none"), path("phone.key")),
                    StartsWith("COLLECT_TLS_CERTIFICATE can't"));
        EXPECT_THAT(fault(ca, path("phone.key"), path("phone.key")),
                    StartsWith("COLLECT_TLS_CERTIFICATE can't"));
        EXPECT_THAT(fault(ca, phone, path("none")), StartsWith("COLLECT_TLS_KEY can't"));
        EXPECT_THAT(fault(ca, phone, phone), StartsWith("COLLECT_TLS_KEY can't"));
        EXPECT_THAT(fault(ca, phone, path("server.key")), StartsWith("COLLECT_TLS_KEY can't"));
        EXPECT_THAT(fault(ca, phone, path("locked.key")), StartsWith("COLLECT_TLS_KEY can't"));
        // What was read is given back, whichever of the files is wrong.
        const auto all_faults = [&] {
          (void)fault(path("phone.key"));
          (void)fault(ca, phone);
          (void)fault(ca, path("phone.key"), path("phone.key"));
          for (const char* key : {"none", "phone.pem", "server.key", "locked.key"}) {
            (void)fault(ca, phone, path(key));
          }
        };
        for (int i = 0; i < 3; ++i) all_faults();
        const size_t used = tls_arena_used();
        for (int i = 0; i < 20; ++i) all_faults();
        EXPECT_EQ(tls_arena_used(), used);
        EXPECT_EQ(fault(path("longest.pem")), "");
        EXPECT_EQ(fault(path("none")), "");  // once in the life of a process
        const int still = open("/dev/null", O_RDONLY | O_CLOEXEC);
        EXPECT_EQ(still, lowest) << "a file was left open";
        close(still);
      }),
      0);
}

}  // namespace
}  // namespace collect::agent
