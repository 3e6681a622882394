// The table of the service against the protocol's own description of it.
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <future>

#include "tests/daemon/control/server_fixture.h"

namespace collect::control {
namespace {

using testing::HasSubstr;

class MethodTableTest : public ServerFixture {
 protected:
  grpc::Status call(const std::string& path, const std::string& request) {
    grpc::GenericStub stub(channel_);
    const grpc::Slice slice(request);
    const grpc::ByteBuffer bytes(&slice, 1);
    grpc::ByteBuffer response;
    const auto made = context();
    std::promise<grpc::Status> ended;
    stub.UnaryCall(made.get(), path, grpc::StubOptions(), &bytes, &response,
                   [&ended](grpc::Status status) { ended.set_value(std::move(status)); });
    return ended.get_future().get();
  }
};

// Field 1 with wire type 7, which no message has.
const std::string kNoMessage = "\x0f";

TEST_F(MethodTableTest, EveryMethodOfTheProtocolIsServed) {
  const auto* const service = google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(
      "collect.control.v1.Collector");
  ASSERT_NE(service, nullptr);
  ASSERT_GT(service->method_count(), 30);
  for (int i = 0; i < service->method_count(); ++i) {
    const auto* const method = service->method(i);
    const std::string path = "/" + service->full_name() + "/" + method->name();
    const grpc::Status status = call(path, kNoMessage);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << path;
    EXPECT_THAT(status.error_message(), HasSubstr(method->input_type()->full_name())) << path;
  }
}

TEST_F(MethodTableTest, UnknownMethodIsUnimplemented) {
  const grpc::Status status = call("/collect.control.v1.Collector/Fly", "");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

}  // namespace
}  // namespace collect::control
