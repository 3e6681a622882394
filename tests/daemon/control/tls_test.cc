// Who may call over TLS: versions, certificates and tokens, for every service there is.
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <spdlog/spdlog.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "daemon/control/credentials.h"
#include "daemon/control/relay/control_listener.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "tests/daemon/control/server_fixture.h"
#include "tests/fakes/log_text.h"
#include "tests/fakes/tls_client.h"

namespace collect::control {
namespace {

using fakes::Authority;
using fakes::CertifiedKey;
using fakes::LogText;
using testing::HasSubstr;
using testing::Not;

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class ControlTlsTest : public testing::Test {
 protected:
  ControlTlsTest() {
    allow_tls_1_3_only();
    std::string pattern = std::filesystem::temp_directory_path() / "control_tls_XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    authority_ = std::make_unique<Authority>(directory_, "ca");
    server_files_ = authority_->issue("server");
    access_.certificate = server_files_.certificate;
    access_.key = server_files_.key;
    // What would be logged, and where a token must never be.
    spdlog::default_logger()->sinks() = {log_};
    spdlog::set_level(spdlog::level::trace);
  }
  ~ControlTlsTest() override {
    server_.reset();
    std::filesystem::remove_all(directory_);
  }

  void start(const std::string& address = "127.0.0.1:0") {
    auto started = ControlServer::start(address, collector_, access_);
    ASSERT_TRUE(started.ok()) << to_string(started.error());
    server_ = std::move(*started);
  }
  std::string dialled() const { return "127.0.0.1:" + std::to_string(server_->port()); }

  std::shared_ptr<grpc::Channel> channel(const CertifiedKey& own = {},
                                         const std::string& ca = {}) const {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = content(ca.empty() ? authority_->certificate() : ca);
    if (!own.key.empty()) {
      options.pem_cert_chain = content(own.certificate);
      options.pem_private_key = content(own.key);
    }
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(dialled(), grpc::SslCredentials(options), arguments);
  }
  static void prepare(grpc::ClientContext& context, const std::string& authorization) {
    context.set_deadline(std::chrono::system_clock::now() + kTestDeadline);
    if (!authorization.empty()) context.AddMetadata("authorization", authorization);
  }
  grpc::Status call(const std::shared_ptr<grpc::Channel>& to,
                    const std::string& authorization = {}) const {
    grpc::ClientContext context;
    prepare(context, authorization);
    api::Stats stats;
    return api::Collector::NewStub(to)->GetStats(&context, {}, &stats);
  }

  std::string directory_;
  std::unique_ptr<Authority> authority_;
  CertifiedKey server_files_;
  ControlAccess access_;
  FakeCollector collector_;
  std::shared_ptr<LogText> log_ = std::make_shared<LogText>();
  std::unique_ptr<ControlServer> server_;
};

TEST_F(ControlTlsTest, TokensAreAskedForBeforeAnyHandler) {
  access_.token = "correct-horse";
  start();
  const auto to = channel();
  EXPECT_EQ(call(to).error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(call(to).error_message(), HasSubstr("--token-file"));
  for (const char* wrong : {"Bearer correct-horsf", "Bearer correct-horse2", "Bearer ",
                            "Basic correct-horse", "correct-horse", "bearer"}) {
    EXPECT_EQ(call(to, wrong).error_code(), grpc::StatusCode::UNAUTHENTICATED) << wrong;
  }
  EXPECT_TRUE(call(to, "Bearer correct-horse").ok());
  // Said once, without any token in it.
  EXPECT_THAT(log_->text(), HasSubstr("without the right token"));
  EXPECT_THAT(log_->text(),
              HasSubstr("connected now: user " + std::to_string(::geteuid()) + " (1)"));
  EXPECT_THAT(log_->text(), Not(HasSubstr("horse")));
}

// The browser of a user who may call shows that user's certificate for any page.
TEST_F(ControlTlsTest, WebPagesMayNotCall) {
  access_.client_ca = authority_->certificate();
  start();
  const auto to = channel(authority_->issue("alice"));
  EXPECT_TRUE(call(to).ok());
  for (const auto& [key, value] : {std::pair{"origin", "https://evil.example"},
                                   {"origin", "null"},
                                   {"sec-fetch-mode", "no-cors"},
                                   {"sec-fetch-site", "none"}}) {
    grpc::ClientContext context;
    prepare(context, "");
    context.AddMetadata(key, value);
    api::Stats stats;
    const grpc::Status status = api::Collector::NewStub(to)->GetStats(&context, {}, &stats);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << key;
    EXPECT_THAT(status.error_message(), HasSubstr("web page")) << key;
  }
  EXPECT_TRUE(call(to).ok());
}

TEST_F(ControlTlsTest, HealthIsBehindTheTokenToo) {
  access_.token = "token";
  start();
  const auto stub = ::grpc::health::v1::Health::NewStub(channel());
  const auto check = [&](const std::string& authorization) {
    grpc::ClientContext context;
    prepare(context, authorization);
    ::grpc::health::v1::HealthCheckResponse response;
    return stub->Check(&context, {}, &response).error_code();
  };
  EXPECT_EQ(check(""), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(check("Bearer token"), grpc::StatusCode::OK);
}

TEST_F(ControlTlsTest, OnlyTheWholeTokenIsTaken) {
  access_.token = "correct-horse";
  start();
  const auto to = channel();
  for (const char* wrong : {"Bearer correct-hors", "Bearer c", "Bearer ", "Bearer correct-horse ",
                            "Bearer correct-horse2", "Bearer Correct-horse", "correct-horse",
                            "bearer correct-horse", "Basic correct-horse"}) {
    EXPECT_EQ(call(to, wrong).error_code(), grpc::StatusCode::UNAUTHENTICATED) << wrong;
  }
  EXPECT_TRUE(call(to, "Bearer correct-horse").ok());
}

TEST_F(ControlTlsTest, ReflectionIsBehindTheTokenToo) {
  access_.token = "token";
  start();
  grpc::GenericStub stub(channel());
  const auto status_with = [&stub](const std::string& authorization) {
    grpc::ClientContext context;
    prepare(context, authorization);
    grpc::CompletionQueue queue;
    const auto call = stub.PrepareCall(
        &context, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", &queue);
    const auto done = [&queue] {
      void* tag = nullptr;
      bool ok = false;
      return queue.Next(&tag, &ok);
    };
    call->StartCall(nullptr);
    EXPECT_TRUE(done());
    call->WritesDone(nullptr);
    EXPECT_TRUE(done());
    grpc::Status status;
    call->Finish(&status, nullptr);
    EXPECT_TRUE(done());
    return status.error_code();
  };
  EXPECT_EQ(status_with(""), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(status_with("Bearer token"), grpc::StatusCode::OK);
}

TEST_F(ControlTlsTest, NewTokenHoldsForTheNextCall) {
  access_.token = "first";
  start();
  const auto to = channel();
  EXPECT_TRUE(call(to, "Bearer first").ok());
  access_.token = "second";
  ASSERT_TRUE(server_->check_access(access_).ok());
  server_->set_access(access_);
  EXPECT_EQ(call(to, "Bearer first").error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_TRUE(call(to, "Bearer second").ok());
}

TEST_F(ControlTlsTest, OnlyVersion13IsSpoken) {
  start();
  fakes::TlsClientOptions options;
  options.ca = authority_->certificate();
  EXPECT_EQ(fakes::TlsClient(dialled(), options).version(), "TLSv1.3");
  options.is_version_12 = true;
  EXPECT_NE(fakes::TlsClient(dialled(), options).fault(), "");
}

TEST_F(ControlTlsTest, ClientCertificatesAreChecked) {
  const Authority foreign(directory_, "foreign");
  access_.client_ca = authority_->certificate();
  start();
  EXPECT_TRUE(call(channel(authority_->issue("good"))).ok());
  for (const CertifiedKey& own : {CertifiedKey(), foreign.issue("stranger"),
                                  authority_->issue("old", std::chrono::minutes(-1))}) {
    EXPECT_EQ(call(channel(own)).error_code(), grpc::StatusCode::UNAVAILABLE) << own.certificate;
  }
  EXPECT_FALSE(call(channel(authority_->issue("good"), foreign.certificate())).ok());
}

TEST_F(ControlTlsTest, PlainClientsGetNothing) {
  start();
  const auto plain = grpc::CreateChannel(dialled(), grpc::InsecureChannelCredentials());
  EXPECT_FALSE(call(plain).ok());
  EXPECT_TRUE(call(channel()).ok());
}

TEST_F(ControlTlsTest, SilentConnectionsEndAtTheDeadline) {
  start();
  fakes::FrameSocket silent = fakes::FrameSocket::connect(dialled());
  fakes::FrameSocket stalled = fakes::FrameSocket::connect(dialled());
  const uint8_t begun[] = {0x16, 0x03, 0x01, 0x02, 0x00, 0x01};
  ASSERT_TRUE(stalled.send_bytes(begun));
  EXPECT_TRUE(silent.ends());
  EXPECT_TRUE(stalled.ends());
  EXPECT_TRUE(call(channel()).ok());
}

// As many as there are places, and more: they are gone after the handshake's deadline.
TEST_F(ControlTlsTest, ManySilentConnectionsDoNotStay) {
  access_.token = "token";
  start();
  std::vector<fakes::FrameSocket> silent;
  for (size_t index = 0; index < kMaxControlConnectionsPerPrincipal + 10; ++index) {
    silent.push_back(fakes::FrameSocket::connect(dialled()));
  }
  EXPECT_TRUE(silent.back().ends());
  EXPECT_THAT(log_->text(), HasSubstr("more than 256 connections of one user"));
  EXPECT_TRUE(silent.front().ends());
  const auto deadline = std::chrono::steady_clock::now() + kTestDeadline;
  bool is_served = false;
  while (!is_served && std::chrono::steady_clock::now() < deadline) {
    is_served = call(channel(), "Bearer token").ok();
  }
  EXPECT_TRUE(is_served);
}

TEST_F(ControlTlsTest, NewCertificateIsSeen) {
  start();
  const Authority next(directory_, "next");
  const CertifiedKey renewed = next.issue("renewed");
  std::filesystem::rename(renewed.key, server_files_.key);
  std::filesystem::rename(renewed.certificate, server_files_.certificate);
  const auto deadline = std::chrono::steady_clock::now() + kTestDeadline;
  bool is_seen = false;
  while (!is_seen && std::chrono::steady_clock::now() < deadline) {
    is_seen = call(channel({}, next.certificate())).ok();
  }
  EXPECT_TRUE(is_seen);
}

TEST_F(ControlTlsTest, ReachableAddressesNeedTlsAndACheck) {
  const auto fault = [this] {
    const auto started = ControlServer::start("0.0.0.0:0", collector_, access_);
    return started.ok() ? std::string() : started.error().message;
  };
  const ControlAccess with_tls = access_;
  EXPECT_THAT(fault(), HasSubstr("needs control_token_file or tls_client_ca;"));
  access_ = {};
  EXPECT_THAT(fault(), HasSubstr("needs tls_certificate and tls_key, and control_token_file"));
  access_.token = "token";
  EXPECT_THAT(fault(), HasSubstr("needs tls_certificate and tls_key;"));
  access_ = with_tls;
  access_.token = "token";
  start("0.0.0.0:0");
  EXPECT_TRUE(call(channel(), "Bearer token").ok());
  // Nothing is taken back while it runs.
  access_.token = "";
  EXPECT_FALSE(server_->check_access(access_).ok());
  access_.token = "other";
  EXPECT_TRUE(server_->check_access(access_).ok());
  for (std::string ControlAccess::* file :
       {&ControlAccess::certificate, &ControlAccess::key, &ControlAccess::client_ca}) {
    ControlAccess moved = access_;
    moved.*file = "elsewhere.pem";
    EXPECT_THAT(server_->check_access(moved).error().message, HasSubstr("start again"));
  }
}

}  // namespace
}  // namespace collect::control
