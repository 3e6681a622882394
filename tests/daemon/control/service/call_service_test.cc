// WatchCalls over gRPC, with a collector that the test writes the script of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/control/service/calls_backlog.h"
#include "tests/daemon/control/server_fixture.h"

namespace collect::control {
namespace {

using testing::HasSubstr;

class CallServiceTest : public ServerFixture {
 protected:
  static api::CallBatch batch(const std::string& function) {
    api::CallBatch batch;
    batch.add_calls()->set_function(function);
    return batch;
  }
};

TEST_F(CallServiceTest, MessagesComeUntilTheSessionIsSealed) {
  const auto made = context();
  const auto reader = stub_->WatchCalls(made.get(), {});
  collector_.wait_for_watches(1);
  EXPECT_EQ(collector_.last_calls().interval().seconds(), 1);  // the defaults
  EXPECT_EQ(collector_.last_calls().max_calls(), 100u);
  collector_.send_calls(batch("a"));
  collector_.send_calls(batch("b"));
  collector_.end_calls({});
  api::CallBatch got;
  ASSERT_TRUE(reader->Read(&got));
  EXPECT_EQ(got.calls(0).function(), "a");
  ASSERT_TRUE(reader->Read(&got));
  EXPECT_EQ(got.calls(0).function(), "b");
  EXPECT_FALSE(reader->Read(&got));
  EXPECT_TRUE(reader->Finish().ok());
  collector_.wait_for_watches(0);
}

TEST_F(CallServiceTest, ClientThatGoesEndsTheWatch) {
  const auto made = context();
  const auto reader = stub_->WatchCalls(made.get(), {});
  collector_.wait_for_watches(1);
  made->TryCancel();
  collector_.wait_for_watches(0);
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(CallServiceTest, ReportsErrorsAsStatus) {
  api::WatchCallsRequest odd;
  odd.mutable_interval()->set_seconds(-1);
  const auto made = context();
  const auto status = stub_->WatchCalls(made.get(), odd)->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  collector_.fail_with({Code::kNotFound, "no session records now"});
  const auto second = context();
  const auto missing = stub_->WatchCalls(second.get(), {})->Finish();
  EXPECT_EQ(missing.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(missing.error_message(), HasSubstr("no session records"));
}

TEST_F(CallServiceTest, ErrorInItsMiddleIsItsEnd) {
  const auto made = context();
  const auto reader = stub_->WatchCalls(made.get(), {});
  collector_.wait_for_watches(1);
  collector_.send_calls(batch("a"));
  collector_.end_calls(Error{Code::kDamaged, "following the calls ended: crashed"});
  api::CallBatch got;
  EXPECT_TRUE(reader->Read(&got));
  EXPECT_FALSE(reader->Read(&got));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::DATA_LOSS);
}

}  // namespace
}  // namespace collect::control
