#include "daemon/control/control_server.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/text_format.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/proto_buffer_writer.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <thread>

#include "daemon/control/relay/control_address.h"
#include "daemon/control/service/reflection_service.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "tests/child/child_process.h"
#include "tests/daemon/control/http2_frames.h"
#include "tests/daemon/control/server_fixture.h"
#include "tests/fakes/machine/socket_address.h"

namespace collect::control {
namespace {

using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using ::testing::HasSubstr;

class ControlServerTest : public ServerFixture {
 protected:
  // Asks a reflection service one question.
  template <class Package>
  typename Package::Response reflect(const typename Package::Request& question) {
    const auto made = context();
    const auto stub = Package::Service::NewStub(channel_);
    const auto stream = stub->ServerReflectionInfo(made.get());
    typename Package::Response answer;
    // As clients do, more than one question in a call.
    for (int i = 0; i < 2; ++i) {
      EXPECT_TRUE(stream->Write(question));
      EXPECT_TRUE(stream->Read(&answer));
    }
    EXPECT_TRUE(stream->WritesDone());
    EXPECT_TRUE(stream->Finish().ok());
    return answer;
  }

  template <class Package>
  void expect_reflection() {
    typename Package::Request question;
    question.set_list_services("*");
    std::vector<std::string> listed;
    const auto services = reflect<Package>(question);
    for (const auto& service : services.list_services_response().service()) {
      listed.push_back(service.name());
    }
    EXPECT_THAT(listed,
                ::testing::ElementsAre("collect.control.v1.Collector", "grpc.health.v1.Health",
                                       "grpc.reflection.v1.ServerReflection",
                                       "grpc.reflection.v1alpha.ServerReflection"));
    for (const std::string& service : listed) {
      question.set_file_containing_symbol(service);
      EXPECT_GT(reflect<Package>(question).file_descriptor_response().file_descriptor_proto_size(),
                0)
          << service;
    }
    // The answer has all that a message needs, with the names that JSON has.
    question.set_file_containing_symbol("collect.control.v1.Collector.StartSession");
    google::protobuf::DescriptorPool pool;
    const auto files = reflect<Package>(question).file_descriptor_response();
    std::map<std::string, google::protobuf::FileDescriptorProto> protos;
    for (const std::string& bytes : files.file_descriptor_proto()) {
      google::protobuf::FileDescriptorProto proto;
      ASSERT_TRUE(proto.ParseFromString(bytes));
      EXPECT_TRUE(protos.emplace(proto.name(), proto).second) << "each once: " << proto.name();
    }
    const auto add = [&](const auto& self, const std::string& name) -> void {
      if (pool.FindFileByName(name) != nullptr) return;
      ASSERT_TRUE(protos.contains(name)) << name;
      for (const std::string& needed : protos[name].dependency()) self(self, needed);
      EXPECT_NE(pool.BuildFile(protos[name]), nullptr);
    };
    add(add, "collect/control/v1/control.proto");
    const auto* agent = pool.FindMessageTypeByName("collect.control.v1.Agent");
    ASSERT_NE(agent, nullptr);
    google::protobuf::DescriptorProto shown;
    agent->CopyTo(&shown);
    const int number = agent->FindFieldByName("connect_time")->index();
    EXPECT_TRUE(shown.field(number).has_json_name());
    EXPECT_EQ(shown.field(number).json_name(), "connectTime");

    question.set_file_by_filename("google/rpc/error_details.proto");
    EXPECT_EQ(reflect<Package>(question).file_descriptor_response().file_descriptor_proto_size(),
              1);
    question.set_file_by_filename("no/such.proto");
    EXPECT_EQ(reflect<Package>(question).error_response().error_code(),
              grpc::StatusCode::NOT_FOUND);
    question.set_file_containing_symbol("no.such.Service");
    EXPECT_EQ(reflect<Package>(question).error_response().error_code(),
              grpc::StatusCode::NOT_FOUND);
    question.set_all_extension_numbers_of_type("collect.control.v1.Agent");
    EXPECT_EQ(reflect<Package>(question).all_extension_numbers_response().base_type_name(),
              "collect.control.v1.Agent");
    question.mutable_file_containing_extension()->set_containing_type("x");
    EXPECT_EQ(reflect<Package>(question).error_response().error_code(),
              grpc::StatusCode::NOT_FOUND);
    question.clear_message_request();
    EXPECT_EQ(reflect<Package>(question).error_response().error_code(),
              grpc::StatusCode::INVALID_ARGUMENT);
  }
};

TEST_F(ControlServerTest, ReflectionListsAndDescribesTheServices) {
  expect_reflection<ReflectionV1>();
  expect_reflection<ReflectionV1Alpha>();
}

TEST_F(ControlServerTest, ShutdownEndsReflection) {
  const auto made = context();
  const auto stub = ReflectionV1::Service::NewStub(channel_);
  const auto stream = stub->ServerReflectionInfo(made.get());
  ReflectionV1::Request question;
  question.set_list_services("*");
  ReflectionV1::Response answer;
  ASSERT_TRUE(stream->Write(question));
  ASSERT_TRUE(stream->Read(&answer));
  auto down = std::async(std::launch::async, [this] { server_->shutdown(kTestDeadline * 10); });
  EXPECT_FALSE(stream->Read(&answer));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(down.wait_for(kTestDeadline), std::future_status::ready);
}

TEST_F(ControlServerTest, HealthIsServing) {
  const auto stub = Health::NewStub(channel_);
  for (const char* service : {"", "collect.control.v1.Collector"}) {
    HealthCheckRequest request;
    request.set_service(service);
    HealthCheckResponse response;
    const auto made = context();
    ASSERT_TRUE(stub->Check(made.get(), request, &response).ok());
    EXPECT_EQ(response.status(), HealthCheckResponse::SERVING);
  }
  HealthCheckRequest unknown;
  unknown.set_service("other");
  HealthCheckResponse response;
  const auto made = context();
  EXPECT_EQ(stub->Check(made.get(), unknown, &response).error_code(), grpc::StatusCode::NOT_FOUND);
  const auto watch_context = context();
  const auto watch = stub->Watch(watch_context.get(), unknown);
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::SERVICE_UNKNOWN);
}

TEST_F(ControlServerTest, SecondServerOnThePortFails) {
  FakeCollector other;
  const auto second = ControlServer::start(server_->address(), other);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.code(), Code::kAlreadyExists);
  EXPECT_THAT(second.error().message, HasSubstr(server_->address()));
  EXPECT_THAT(second.error().message, HasSubstr("in use"));
}

TEST_F(ControlServerTest, PortIsFreeAfterShutdown) {
  const std::string address = server_->address();
  server_->shutdown(ControlServer::kShutdownDeadline);
  server_->shutdown(ControlServer::kShutdownDeadline);  // again does nothing
  server_->set_access({});                              // nor does this
  FakeCollector other;
  const auto second = ControlServer::start(address, other);
  EXPECT_TRUE(second.ok()) << to_string(second.error());
}

TEST_F(ControlServerTest, RefusesAddressesThatNeedCredentials) {
  const auto open = ControlServer::start("0.0.0.0:0", collector_);
  ASSERT_FALSE(open.ok());
  EXPECT_EQ(open.code(), Code::kInvalidArgument);
}

// What a stranger's client sees, with nothing but the address.
TEST_F(ControlServerTest, PublicClientsNeedNoSchema) {
  const auto run = [](const std::string& command) {
    const child::Ending ending = child::run_shell(command + " 2>&1");
    return std::make_pair(ending.exit_code, ending.output);
  };
  // test.sh says where they are; someone who runs the test alone has them on PATH.
  const auto client = [&](const char* variable, const char* name) -> std::string {
    const char* path = std::getenv(variable);
    if (path != nullptr && *path != '\0') return path;
    return run(std::string("command -v ") + name).first == 0 ? name : "";
  };
  const std::string grpcurl = client("COLLECT_GRPCURL", "grpcurl");
  const std::string buf = client("COLLECT_BUF", "buf");
  if (grpcurl.empty() && buf.empty()) GTEST_SKIP() << "there is neither grpcurl nor buf";
  const std::string method = "collect.control.v1.Collector/StartDetail";
  if (!grpcurl.empty()) {
    const std::string call = grpcurl + " -plaintext " + server_->address() + " ";
    EXPECT_THAT(run(call + "list").second, HasSubstr("collect.control.v1.Collector"));
    const auto [code, output] = run(call + method);
    EXPECT_EQ(code, 0) << output;
  }
  if (!buf.empty()) {
    const std::string call = buf + " curl --protocol grpc --http2-prior-knowledge ";
    const std::string base = "http://" + server_->address();
    EXPECT_THAT(run(call + "--list-methods " + base).second, HasSubstr(method));
    const auto [code, output] = run(call + "-d '{}' " + base + "/" + method);
    EXPECT_EQ(code, 0) << output;
    EXPECT_THAT(run(call + base + "/grpc.health.v1.Health/Check").second, HasSubstr("SERVING"));
  }
  EXPECT_EQ(collector_.last_detail().mode, api::DETAIL_MODE_ON);
}

// The deadline is far away: live watches, busy and idle, must not make shutdown wait for it.
TEST_F(ControlServerTest, ShutdownEndsLiveStreamsFirst) {
  collector_.add_agent("1", "lua", api::AGENT_STATE_RECORDING);
  collector_.add_session("one", api::SESSION_STATE_ACTIVE);
  const auto agents_context = context();
  const auto agents = stub_->WatchAgents(agents_context.get(), {});
  const auto session_context = context();
  const auto session = stub_->WatchSession(session_context.get(), {});
  const auto health_stub = Health::NewStub(channel_);
  const auto health_context = context();
  const auto health = health_stub->Watch(health_context.get(), {});
  api::AgentEvent event;
  ASSERT_TRUE(agents->Read(&event));
  ASSERT_TRUE(agents->Read(&event));
  EXPECT_EQ(event.kind(), api::CHANGE_KIND_SYNCED);
  api::Session state;
  ASSERT_TRUE(session->Read(&state));
  HealthCheckResponse serving;
  ASSERT_TRUE(health->Read(&serving));

  auto down = std::async(std::launch::async, [this] { server_->shutdown(kTestDeadline * 10); });
  EXPECT_FALSE(agents->Read(&event));
  EXPECT_EQ(agents->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_FALSE(session->Read(&state));
  EXPECT_EQ(session->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  while (health->Read(&serving)) {
  }
  EXPECT_EQ(health->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(down.wait_for(kTestDeadline), std::future_status::ready);
  collector_.wait_for_watches(0);
}

TEST_F(ControlServerTest, ShutdownIgnoresAClientWithoutACall) {
  api::StopSessionResponse response;
  (void)call(&api::Collector::Stub::StopSession, {}, &response);  // its connection stays open
  auto down = std::async(std::launch::async, [this] { server_->shutdown(std::chrono::hours(1)); });
  EXPECT_EQ(down.wait_for(kTestDeadline), std::future_status::ready);
}

TEST_F(ControlServerTest, ShutdownCancelsUnansweredCalls) {
  collector_.hold_answers();
  std::thread client([this] {
    api::StopSessionResponse response;
    EXPECT_FALSE(call(&api::Collector::Stub::StopSession, {}, &response).ok());
  });
  collector_.wait_for_held(1);
  auto down =
      std::async(std::launch::async, [this] { server_->shutdown(std::chrono::milliseconds(100)); });
  EXPECT_EQ(down.wait_for(kTestDeadline), std::future_status::ready);
  client.join();
  server_.reset();
  collector_.release_all();  // the late answer finds no one
}

TEST_F(ControlServerTest, ShutdownIgnoresAClientThatNeverReads) {
  const auto made = context();
  const auto reader = stub_->WatchAgents(made.get(), {});
  collector_.wait_for_watches(1);
  for (int i = 0; i < 2000; ++i) {
    api::Agent agent;
    agent.set_name("agents/" + std::to_string(i));
    agent.set_status(std::string(1000, 's'));
    collector_.change_agent(api::CHANGE_KIND_ADDED, agent);
  }
  auto down =
      std::async(std::launch::async, [this] { server_->shutdown(std::chrono::milliseconds(200)); });
  EXPECT_EQ(down.wait_for(kTestDeadline), std::future_status::ready);
  made->TryCancel();
}

class UnixSocketTest : public ::testing::Test {
 protected:
  UnixSocketTest() {
    std::string pattern = ::testing::TempDir() + "control-XXXXXX";
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  ~UnixSocketTest() override { std::filesystem::remove_all(directory_); }

  std::filesystem::path directory_;
  FakeCollector collector_;
};

TEST_F(UnixSocketTest, ServesOnlyItsUser) {
  const std::string path = directory_ / "control.sock";
  auto server = ControlServer::start("unix:" + path, collector_);
  ASSERT_TRUE(server.ok()) << to_string(server.error());
  EXPECT_EQ((*server)->port(), 0);
  EXPECT_EQ((*server)->address(), "unix:" + path);
  struct stat status{};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);

  const auto channel =
      grpc::CreateChannel((*server)->address(), grpc::InsecureChannelCredentials());
  const auto stub = api::Collector::NewStub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kTestDeadline);
  api::Stats stats;
  EXPECT_TRUE(stub->GetStats(&context, {}, &stats).ok());

  const auto second = ControlServer::start("unix:" + path, collector_);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.code(), Code::kAlreadyExists);
  grpc::ClientContext again;
  again.set_deadline(std::chrono::system_clock::now() + kTestDeadline);
  EXPECT_TRUE(stub->GetStats(&again, {}, &stats).ok()) << "the second must not take the path";
}

// RFC 9113, 6.5.2: the numbers 3 and 6. CONTROL.md "Limits" has the values.
TEST_F(UnixSocketTest, TellsClientsItsLimits) {
  const std::string path = directory_ / "control.sock";
  auto server = ControlServer::start("unix:" + path, collector_);
  ASSERT_TRUE(server.ok()) << to_string(server.error());
  const auto address = fakes::unix_name(path);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval bound{kTestDeadline.count(), 0};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof bound);
  ASSERT_EQ(::connect(fd, address.get(), address.bytes), 0);
  const std::string hello = kPreface + frame(4, 0, 0);
  ASSERT_EQ(::send(fd, hello.data(), hello.size(), 0), ssize_t(hello.size()));
  const auto read = [fd](size_t bytes) {
    std::vector<uint8_t> some(bytes);
    EXPECT_EQ(::recv(fd, some.data(), bytes, MSG_WAITALL), ssize_t(bytes));
    return some;
  };
  const std::vector<uint8_t> header = read(9);
  ASSERT_EQ(header[3], 4) << "SETTINGS come first";
  const std::vector<uint8_t> payload = read(size_t{header[1]} << 8 | header[2]);
  std::map<uint32_t, uint32_t> settings;
  for (size_t at = 0; at + 6 <= payload.size(); at += 6) {
    uint32_t value = 0;
    for (size_t i = 2; i < 6; ++i) value = value << 8 | payload[at + i];
    settings[uint32_t{payload[at]} << 8 | payload[at + 1]] = value;
  }
  EXPECT_EQ(settings[3], 256u) << "MAX_CONCURRENT_STREAMS";
  EXPECT_EQ(settings[6], 16'384u) << "MAX_HEADER_LIST_SIZE";
  ::close(fd);
}

// The user alone decides who may connect, not what is configured for addresses of the
// network.
TEST_F(UnixSocketTest, NeedsNoTokenAndTakesAnyConfiguration) {
  ControlAccess access;
  access.token = "token";
  auto server =
      ControlServer::start("unix:" + std::string(directory_ / "x.sock"), collector_, access);
  ASSERT_TRUE(server.ok()) << to_string(server.error());
  access.token = "other";
  access.client_ca = "ca.pem";
  EXPECT_TRUE((*server)->check_access(access).ok());
  (*server)->set_access(access);
  const auto stub = api::Collector::NewStub(
      grpc::CreateChannel((*server)->address(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kTestDeadline);
  api::Stats stats;
  EXPECT_TRUE(stub->GetStats(&context, {}, &stats).ok());
}

// A service manager keeps listening on it, for the next one that it starts.
TEST_F(UnixSocketTest, LeavesAnInheritedSocketsFile) {
  const std::string path = directory_ / "control.sock";
  const auto inherited = listen_on(*parse_control_address("unix:" + path));
  ASSERT_TRUE(inherited.ok());
  for (const bool is_inherited : {true, false}) {
    auto server = ControlServer::start(is_inherited ? "" : "unix:" + path, collector_, {},
                                       is_inherited ? *inherited : -1);
    ASSERT_TRUE(server.ok()) << to_string(server.error());
    EXPECT_EQ((*server)->address(), "unix:" + path);
    server->reset();
    EXPECT_EQ(std::filesystem::exists(path), is_inherited);
  }
}

TEST_F(UnixSocketTest, DoesNotReplaceAFile) {
  const auto path = directory_ / "notes.txt";
  std::ofstream(path) << "mine";
  EXPECT_FALSE(ControlServer::start("unix:" + path.string(), collector_).ok());
  EXPECT_TRUE(std::filesystem::is_regular_file(path));
}

TEST_F(UnixSocketTest, SaysWhyADirectoryCannotHoldIt) {
  const auto server =
      ControlServer::start("unix:" + (directory_ / "missing/x.sock").string(), collector_);
  ASSERT_FALSE(server.ok());
  EXPECT_EQ(server.code(), Code::kNotFound);
}

}  // namespace
}  // namespace collect::control
