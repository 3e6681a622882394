// A control server on a free port with a scripted collector behind it, and a channel to it.
#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "collect/control/v1/control.grpc.pb.h"
#include "daemon/control/control_server.h"
#include "tests/daemon/control/fake_collector.h"

namespace collect::control {

// Long enough for a loaded machine; nothing waits this long when it works.
inline constexpr std::chrono::seconds kTestDeadline{30};

class ServerFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    auto started = ControlServer::start("127.0.0.1:0", collector_);
    ASSERT_TRUE(started.ok()) << to_string(started.error());
    server_ = std::move(*started);
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    channel_ = grpc::CreateCustomChannel(server_->address(), grpc::InsecureChannelCredentials(),
                                         arguments);
    stub_ = api::Collector::NewStub(channel_);
  }

  // Every call ends by itself at the deadline, so that a broken server fails and does not hang.
  static std::unique_ptr<grpc::ClientContext> context() {
    auto made = std::make_unique<grpc::ClientContext>();
    made->set_deadline(std::chrono::system_clock::now() + kTestDeadline);
    return made;
  }

  template <class Request, class Response>
  grpc::Status call(grpc::Status (api::Collector::Stub::*method)(grpc::ClientContext*,
                                                                 const Request&, Response*),
                    const Request& request, Response* response) {
    const auto made = context();
    return (stub_.get()->*method)(made.get(), request, response);
  }

  FakeCollector collector_;
  std::unique_ptr<ControlServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<api::Collector::Stub> stub_;
};

}  // namespace collect::control
