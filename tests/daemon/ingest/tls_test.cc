// Who gets in over TLS, and who does not: certificates, tokens, versions, and those who speak
// something else or nothing at all.
#include <gmock/gmock.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/ssl.h>

#include <filesystem>
#include <fstream>

#include "formats/dial9/layout.h"
#include "tests/daemon/ingest/ingest_fixture.h"
#include "tests/fakes/dial9_stream.h"
#include "tests/fakes/tls_client.h"

namespace collect::ingest {
namespace {

using fakes::Authority;
using fakes::CertifiedKey;
using fakes::FakeAgent;
using fakes::FakeProcess;
using fakes::FrameSocket;
using fakes::TlsClient;
using fakes::TlsClientOptions;
using fakes::TlsTunnel;
using testing::HasSubstr;

class TlsTest : public IngestTest {
 protected:
  TlsTest() : authority_(root_, "ca"), server_(authority_.issue("server")) {}

  std::shared_ptr<const TlsContext> load(const std::string& client_ca = {}) {
    auto loaded = TlsContext::load({server_.certificate, server_.key, client_ca});
    EXPECT_TRUE(loaded.ok()) << to_string(loaded.error());
    return loaded.ok() ? std::move(loaded).value() : nullptr;
  }
  TlsClientOptions client(CertifiedKey own = {}) const {
    return {authority_.certificate(), std::move(own), false};
  }
  static FakeProcess process_with(const std::string& token) {
    FakeProcess process;
    process.token = token;
    return process;
  }
  // What the collector answers to a hello over TLS; its first frame's type.
  std::string answer_to_hello(const std::string& token, TlsClientOptions options) {
    TlsTunnel tunnel(address(), std::move(options));
    FakeAgent agent(process_with(token));
    if (agent.connect(tunnel.address())) return "welcome";
    return agent.refused() ? agent.refused()->reason() : "closed";
  }
  // A connection with this certificate: whether it survives the server's look at it.
  std::string fault_with(CertifiedKey own) {
    TlsClient client_side(address(), client(std::move(own)));
    if (!client_side.fault().empty()) return client_side.fault();
    // In TLS 1.3 the client hears of it after its own handshake.
    const auto hello =
        fakes::frame_bytes(wire::FrameType::kHello, FakeAgent().hello(wire::CHANNEL_UNSPECIFIED));
    (void)client_side.send_bytes(hello);
    const auto answer = client_side.receive_all();
    return client_side.ended_cleanly() && !answer.empty() ? "" : client_side.fault();
  }

  Authority authority_;
  CertifiedKey server_;
};

TEST_F(TlsTest, RecordingOverTlsIsWhole) {
  options_.tls = load();
  options_.token = "secret";
  start();
  constexpr uint64_t kEvents = 300'000;  // many records, many buffers
  TlsTunnel tunnel(address(), client());
  FakeAgent agent(process_with("secret"));
  ASSERT_TRUE(agent.connect(tunnel.address()));
  record_all(agent, 1, 1, kEvents);
  const auto session = reported_.session_in(SessionState::kComplete);
  ASSERT_TRUE(session.has_value());
  EXPECT_EQ(stored_events(*session, 0, kEvents), fakes::index_events(0, kEvents));
}

TEST_F(TlsTest, TokensAreAskedFor) {
  options_.tls = load();
  options_.token = "secret";
  start();
  EXPECT_THAT(answer_to_hello("", client()), HasSubstr("asks for a token"));
  EXPECT_THAT(answer_to_hello("secreT", client()), HasSubstr("the token is wrong"));
  EXPECT_EQ(answer_to_hello("secret", client()), "welcome");
}

TEST_F(TlsTest, OnlyVersion13IsSpoken) {
  options_.tls = load();
  start();
  TlsClientOptions old = client();
  old.is_version_12 = true;
  EXPECT_THAT(TlsClient(address(), old).fault(), HasSubstr("protocol version"));
  const TlsClient current(address(), client());
  EXPECT_EQ(current.fault(), "");
  EXPECT_EQ(current.version(), "TLSv1.3");
}

TEST_F(TlsTest, ClientCertificatesAreChecked) {
  const Authority foreign(root_, "foreign");
  options_.tls = load(authority_.certificate());
  start();
  EXPECT_THAT(fault_with({}), HasSubstr("certificate required"));
  EXPECT_THAT(fault_with(foreign.issue("unknown")), HasSubstr("unknown ca"));
  EXPECT_THAT(fault_with(authority_.issue("old", std::chrono::minutes(-1))),
              HasSubstr("certificate expired"));
  EXPECT_EQ(fault_with(authority_.issue("good")), "");
  EXPECT_EQ(answer_to_hello("", client(authority_.issue("agent"))), "welcome");
}

TEST_F(TlsTest, TokenAndCertificateAreBothAskedFor) {
  options_.tls = load(authority_.certificate());
  options_.token = "secret";
  start();
  const CertifiedKey own = authority_.issue("agent");
  EXPECT_EQ(answer_to_hello("secret", client(own)), "welcome");
  EXPECT_THAT(answer_to_hello("", client(own)), HasSubstr("asks for a token"));
  EXPECT_EQ(answer_to_hello("secret", client()), "closed");
}

// An agent with the resume key but another certificate does not get the recording.
TEST_F(TlsTest, RecordingOfACertificateIsItsHoldersAlone) {
  options_.tls = load(authority_.certificate());
  start();
  const CertifiedKey own = authority_.issue("agent");
  std::string key;
  {
    TlsTunnel tunnel(address(), client(own));
    FakeAgent agent;
    ASSERT_TRUE(agent.connect(tunnel.address()));
    ASSERT_TRUE(agent.start_recording(1));
    ASSERT_TRUE(agent.open_stream(1, 11));
    ASSERT_TRUE(agent.send_events(1, 0, 10));
    ASSERT_TRUE(agent.wait_stored(1, 10));
    key = agent.resume_key();
    agent.disconnect();
  }
  const auto comes_back = [&](CertifiedKey with) {
    TlsTunnel tunnel(address(), client(std::move(with)));
    FakeAgent agent;
    agent.resume_key() = key;
    agent.set_recording(1, true);
    if (!agent.connect(tunnel.address())) {
      return agent.refused() ? agent.refused()->reason() : std::string("closed");
    }
    return std::string(agent.welcome().resumed() ? "resumed" : "new");
  };
  EXPECT_NE(comes_back(authority_.issue("another")), "resumed");
  EXPECT_EQ(comes_back(own), "resumed");
}

TEST_F(TlsTest, ClosesOnlyPeersWithoutTls) {
  options_.tls = load();
  options_.io_threads = 1;  // what one of them does wrong would be the others' too
  capture_log();
  start();
  TlsTunnel tunnel(address(), client());
  FakeAgent good;
  ASSERT_TRUE(good.connect(tunnel.address()));
  FrameSocket plain = FrameSocket::connect(address());
  ASSERT_TRUE(plain.send(wire::FrameType::kHello, FakeAgent().hello(wire::CHANNEL_CONTROL)));
  EXPECT_TRUE(plain.ends());
  FrameSocket garbage = FrameSocket::connect(address());
  const std::vector<uint8_t> noise(100'000, 0x16);  // a TLS record's first byte, again and again
  (void)garbage.send_bytes(noise);
  EXPECT_TRUE(garbage.ends());
  FrameSocket cut = FrameSocket::connect(address());
  const uint8_t begun[] = {0x16, 0x03, 0x01, 0x02, 0x00, 0x01};
  (void)cut.send_bytes(begun);
  cut.close();
  EXPECT_TRUE(eventually([this] { return ingest_->counters().connections_refused == 3; }));
  record_all(good, 1, 1, 1000);
  EXPECT_THAT(log_->text(), HasSubstr(": TLS handshake: TLS: wrong version number"));
}

// Each byte comes long before the deadline of the one before, which is no one's.
TEST_F(TlsTest, HandshakesThatStallEndAtTheDeadline) {
  options_.tls = load();
  start();
  FrameSocket silent = FrameSocket::connect(address());
  FrameSocket dripping = FrameSocket::connect(address());
  FrameSocket stalled = FrameSocket::connect(address());
  const uint8_t begun[] = {0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc};
  ASSERT_TRUE(stalled.send_bytes(begun));
  const uint8_t start_of_record[] = {0x16, 0x03, 0x01, 0x20, 0x00, 0x01};
  ASSERT_TRUE(dripping.send_bytes(start_of_record));
  const uint8_t more[] = {0};
  const auto give_up = std::chrono::steady_clock::now() + fakes::kPatience;
  bool dripping_ended = false;
  while (!dripping_ended && std::chrono::steady_clock::now() < give_up) {
    dripping_ended = dripping.ends(milliseconds(500)) || !dripping.send_bytes(more);
  }
  EXPECT_TRUE(dripping_ended);
  EXPECT_TRUE(silent.ends());
  EXPECT_TRUE(stalled.ends());
  EXPECT_EQ(ingest_->counters().connections_refused, 3u);
}

TEST_F(TlsTest, FeedsNeedACertificateOnceATokenIsSet) {
  options_.tls = load();
  options_.token = "secret";
  start();
  std::vector<uint8_t> header(std::begin(dial9::kMagic), std::end(dial9::kMagic));
  header.push_back(dial9::kFormatVersion);
  {
    TlsClient feed(address(), client());
    ASSERT_TRUE(feed.send_bytes(header));
    EXPECT_TRUE(feed.receive_all().empty());
  }
  EXPECT_TRUE(eventually([this] { return ingest_->counters().connections_refused == 1; }));
  ASSERT_TRUE(ingest_->set_access("secret", load(authority_.certificate())).ok());
  {
    TlsClient feed(address(), client(authority_.issue("feed")));
    ASSERT_TRUE(feed.send_bytes(header));
    EXPECT_TRUE(
        reported_.session([](const auto& session) { return session.process_name == "dial9"; }));
  }
  EXPECT_EQ(ingest_->counters().connections_refused, 1u);
}

// A peer that is killed does not say so in TLS: the connection just ends. That is heard of at once,
// also behind reads that found nothing, and not when a frame has stood still for half a minute.
TEST_F(TlsTest, ConnectionThatBreaksOffEndsItsSession) {
  options_.tls = load();
  start();
  const auto state_of_feed = [this](bool over) {
    return reported_.session([over](const SessionSnapshot& session) {
      return session.process_name == "dial9" && is_over(session.state) == over;
    });
  };
  {
    TlsClient feed(address(), client());
    ASSERT_TRUE(feed.send_bytes(Bytes(fakes::kDial9Example).first(30)));  // within a frame
    ASSERT_TRUE(state_of_feed(false));
  }
  const auto session = state_of_feed(true);
  ASSERT_TRUE(session.has_value());
  EXPECT_EQ(session->state, SessionState::kRecovered);
}

TEST_F(TlsTest, NewCertificatesAndTokensHoldForNewConnections) {
  options_.tls = load();
  options_.token = "first";
  start();
  TlsTunnel tunnel(address(), client());
  FakeAgent before(process_with("first"));
  ASSERT_TRUE(before.connect(tunnel.address()));

  const Authority other(root_, "other");
  server_ = other.issue("other_server");
  ASSERT_TRUE(ingest_->set_access("second", load()).ok());
  EXPECT_THAT(TlsClient(address(), client()).fault(), HasSubstr("certificate verify failed"));
  TlsClientOptions fresh;
  fresh.ca = other.certificate();
  EXPECT_THAT(answer_to_hello("first", fresh), HasSubstr("the token is wrong"));
  FakeProcess process = process_with("second");
  process.id_byte = 2;
  FakeAgent after(process);
  TlsTunnel second(address(), fresh);
  EXPECT_TRUE(after.connect(second.address()));
  record_all(before, 1, 1, 1000);  // who was in before stays
}

TEST_F(TlsTest, ReachableAddressesNeedTlsAndACheck) {
  const auto fault = [this] {
    const auto ingest = Ingest::bind(options_, *fs_, reported_);
    return ingest.ok() ? std::string() : ingest.error().message;
  };
  options_.listen = "0.0.0.0:0";
  EXPECT_THAT(fault(), HasSubstr("needs tls_certificate and tls_key, and token_file"));
  options_.token = "secret";
  EXPECT_THAT(fault(), HasSubstr("needs tls_certificate and tls_key;"));
  options_.token = "";
  options_.tls = load();
  EXPECT_THAT(fault(), HasSubstr("needs token_file or tls_client_ca;"));
  options_.token = "secret";
  start();
  EXPECT_EQ(answer_to_hello("secret", client()), "welcome");
  // Nothing is taken back while it runs.
  EXPECT_FALSE(ingest_->set_access("", load()).ok());
  EXPECT_FALSE(ingest_->set_access("secret", nullptr).ok());
  EXPECT_TRUE(ingest_->set_access("", load(authority_.certificate())).ok());
}

TEST_F(TlsTest, WarnsOfSuspiciousCertificatesAndKeys) {
  capture_log();
  (void)load();
  EXPECT_EQ(log_->text(), "");
  const CertifiedKey old = authority_.issue("old", std::chrono::minutes(-1));
  ASSERT_TRUE(TlsContext::load({old.certificate, old.key, ""}).ok());
  EXPECT_THAT(log_->text(), HasSubstr("tls_certificate: " + old.certificate + " has expired"));
  EXPECT_THAT(log_->text(), Not(HasSubstr("is not valid yet")));
  const CertifiedKey early =
      authority_.issue("early", std::chrono::minutes(60), std::chrono::minutes(30));
  ASSERT_TRUE(TlsContext::load({early.certificate, early.key, ""}).ok());
  EXPECT_THAT(log_->text(),
              HasSubstr("tls_certificate: " + early.certificate + " is not valid yet"));
  EXPECT_THAT(log_->text(), Not(HasSubstr("can be read by others")));
  for (const int mode : {0640, 0604}) {
    std::filesystem::permissions(server_.key, std::filesystem::perms(mode));
    EXPECT_THAT(exposure_of(server_.key), HasSubstr("chmod 600")) << mode;
  }
  (void)load();
  EXPECT_THAT(log_->text(), HasSubstr("tls_key: " + server_.key + " can be read by others"));
  EXPECT_EQ(exposure_of(root_ + "/none"), "");
}

TEST_F(TlsTest, FilesThatCannotServeAreNamed) {
  const auto fault = [](const TlsFiles& files) {
    const auto loaded = TlsContext::load(files);
    EXPECT_EQ(ERR_peek_error(), 0u) << "the next call would take it for its own";
    return loaded.ok() ? std::string() : loaded.error().message;
  };
  const CertifiedKey other = authority_.issue("another");
  EXPECT_THAT(fault({root_ + "/none.pem", server_.key, ""}),
              testing::AllOf(HasSubstr("tls_certificate: "), HasSubstr("No such file")));
  EXPECT_THAT(fault({server_.certificate, root_ + "/none.key", ""}),
              testing::AllOf(HasSubstr("tls_key: "), HasSubstr("No such file")));
  EXPECT_THAT(fault({server_.certificate, server_.key, root_ + "/none.pem"}),
              testing::AllOf(HasSubstr("tls_client_ca: "), HasSubstr("No such file")));
  EXPECT_THAT(fault({root_, server_.key, ""}), HasSubstr("(want PEM)"));
  const std::string text = root_ + "/text";
  std::ofstream(text) << "nothing of the kind";
  EXPECT_EQ(fault({text, server_.key, ""}),
            "tls_certificate: " + text + ": no start line (want PEM)");
  ERR_raise(ERR_LIB_SSL, ERR_R_INTERNAL_ERROR);  // of something else on this thread
  EXPECT_EQ(fault({server_.certificate, text, ""}),
            "tls_key: " + text + ": unsupported (want PEM)");
  EXPECT_EQ(fault({server_.certificate, server_.key, text}),
            "tls_client_ca: " + text + ": no start line (want PEM)");
  EXPECT_EQ(fault({server_.certificate, server_.key, authority_.certificate()}), "");
  // Of another kind than the certificate's.
  const std::string rsa = root_ + "/rsa.key";
  {
    EVP_PKEY* const key = EVP_RSA_gen(2048);
    std::FILE* const file = std::fopen(rsa.c_str(), "w");
    ASSERT_EQ(PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr), 1);
    std::fclose(file);
    EVP_PKEY_free(key);
  }
  EXPECT_THAT(fault({server_.certificate, rsa, ""}), HasSubstr("is not the key of"));
  EXPECT_THAT(fault({server_.certificate, other.key, ""}), HasSubstr("is not the key of"));
  const std::string rsa_key = root_ + "/rsa.key";
  fakes::write_rsa_key(rsa_key);
  EXPECT_THAT(fault({server_.certificate, rsa_key, ""}), HasSubstr("is not the key of"));
  EXPECT_THAT(fault({server_.key, server_.key, ""}), HasSubstr("server.key"));
  EXPECT_THAT(fault({server_.certificate, server_.certificate, ""}), HasSubstr("tls_key: "));
  EXPECT_THAT(fault({server_.certificate, server_.key, server_.key}), HasSubstr("tls_client_ca: "));
  EXPECT_EQ(exposure_of(server_.key), "");
  std::filesystem::permissions(server_.key, std::filesystem::perms(0644));
  EXPECT_THAT(exposure_of(server_.key), HasSubstr("chmod 600"));
}

TEST_F(TlsTest, ConnectionsTlsIsFreedWithIt) {
  static int freed;
  freed = 0;
  const int index = SSL_get_ex_new_index(
      0, nullptr, nullptr, nullptr,
      [](void*, void* value, CRYPTO_EX_DATA*, int, long, void*) { freed += value != nullptr; });
  TlsSession session = load()->accept_on(-1);
  ASSERT_TRUE(session);
  SSL_set_ex_data(session.get(), index, this);
  // And its settings with the last connection that was made with them.
  static int forgotten;
  forgotten = 0;
  const int of_context = SSL_CTX_get_ex_new_index(
      0, nullptr, nullptr, nullptr,
      [](void*, void* value, CRYPTO_EX_DATA*, int, long, void*) { forgotten += value != nullptr; });
  SSL_CTX_set_ex_data(SSL_get_SSL_CTX(session.get()), of_context, this);
  EXPECT_EQ(freed, 0);
  EXPECT_EQ(forgotten, 0);
  session.reset();
  EXPECT_EQ(freed, 1);
  EXPECT_EQ(forgotten, 1);
}

// No one is asked for its passphrase at the terminal.
TEST_F(TlsTest, LockedKeyIsRefused) {
  const std::string locked = root_ + "/locked.key";
  EVP_PKEY* const key = EVP_RSA_gen(2048);
  std::FILE* const file = std::fopen(locked.c_str(), "w");
  const unsigned char passphrase[] = "secret";
  ASSERT_EQ(PEM_write_PrivateKey(file, key, EVP_aes_256_cbc(), passphrase, 6, nullptr, nullptr), 1);
  std::fclose(file);
  EVP_PKEY_free(key);
  const auto loaded = TlsContext::load({server_.certificate, locked, ""});
  ASSERT_FALSE(loaded.ok());
  EXPECT_THAT(loaded.error().message, HasSubstr("tls_key: " + locked));
}

// Silent connections, more than there are places: the oldest of them go, agents come and record.
TEST_F(TlsTest, ThousandSilentConnectionsDoNotBlockAnAgent) {
  options_.tls = load();
  start();
  std::vector<FrameSocket> silent;
  for (uint32_t index = 0; index < kMaxPendingConnections + 50; ++index) {
    silent.push_back(FrameSocket::connect(address()));
    ASSERT_TRUE(silent.back().is_open()) << index;
  }
  TlsTunnel tunnel(address(), client());
  FakeAgent agent;
  ASSERT_TRUE(agent.connect(tunnel.address()));
  record_all(agent, 1, 1, 100'000);
  const auto session = reported_.session_in(SessionState::kComplete);
  ASSERT_TRUE(session.has_value());
  EXPECT_EQ(stored_events(*session, 0, 100'000), fakes::index_events(0, 100'000));
  EXPECT_TRUE(silent.front().ends());
  // And all the others at their deadline.
  EXPECT_TRUE(silent.back().ends());
  EXPECT_TRUE(eventually(
      [this] { return ingest_->counters().connections_refused >= kMaxPendingConnections + 50; }));
}

}  // namespace
}  // namespace collect::ingest
