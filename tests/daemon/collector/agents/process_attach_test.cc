// Who may have processes attached to, and which. That it works is for tests/e2e.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/collector/agents/process_attach.h"
#include "tests/daemon/collector/collector_fixture.h"

namespace collect::daemon {
namespace {

using principal::Principal;
using testing::AllOf;
using testing::HasSubstr;

class ProcessAttachTest : public testing::Test {
 protected:
  Result<api::AttachProcessResponse> attach(int32_t pid, const Principal& caller) {
    control::CallOf<api::AttachProcessRequest> call{{}, caller};
    call.request.set_pid(pid);
    Waiting<api::AttachProcessResponse> waiting;
    methods_.call(call, waiting.callback());
    return waiting.get();
  }
  Result<api::DetachProcessResponse> detach(int32_t pid, const Principal& caller) {
    control::CallOf<api::DetachProcessRequest> call{{}, caller};
    call.request.set_pid(pid);
    Waiting<api::DetachProcessResponse> waiting;
    methods_.call(call, waiting.callback());
    return waiting.get();
  }
  void TearDown() override { attach_.stop(); }

  const Principal own_ = Principal::of_uid(::geteuid());
  Registry registry_;
  control::Methods methods_;
  ProcessAttach attach_{registry_, {"127.0.0.1:1", false, ""}, methods_};
};

TEST_F(ProcessAttachTest, OnlyTheUserOfTheCollectorAndRoot) {
  const std::string other = std::to_string(::geteuid() + 1);
  for (const int32_t pid : {1, ::getpid(), 999'999'999}) {
    const auto refused = attach(pid, Principal::of_uid(::geteuid() + 1));
    EXPECT_EQ(refused.code(), Code::kPermission);
    EXPECT_THAT(refused.error().message, AllOf(HasSubstr("user " + std::to_string(::geteuid())),
                                               HasSubstr("user " + other)));
    EXPECT_EQ(detach(pid, Principal::of_uid(::geteuid() + 1)).code(), Code::kPermission);
  }
  EXPECT_EQ(attach(999'999'999, own_).error().message, "no process 999999999");
  EXPECT_EQ(attach(999'999'999, Principal::of_uid(0)).code(), Code::kNotFound);
}

TEST_F(ProcessAttachTest, SendsOtherCallersToTheUnixSocket) {
  for (const Principal& caller :
       {Principal(), Principal{Principal::Kind::kAddress, "192.0.2.7"},
        Principal{Principal::Kind::kCertificate, std::to_string(::geteuid())}}) {
    for (const Error& refused :
         {attach(::getpid(), caller).error(), detach(::getpid(), caller).error()}) {
      EXPECT_EQ(refused.code, Code::kPermission);
      EXPECT_THAT(refused.message, AllOf(HasSubstr("Unix socket"), HasSubstr("collectctl attach")));
    }
  }
}

TEST_F(ProcessAttachTest, CollectorBehindTlsRefuses) {
  control::Methods methods;
  ProcessAttach behind_tls(registry_, {"127.0.0.1:1", true, ""}, methods);
  control::CallOf<api::AttachProcessRequest> call{{}, own_};
  call.request.set_pid(::getpid());
  Waiting<api::AttachProcessResponse> waiting;
  methods.call(call, waiting.callback());
  EXPECT_EQ(waiting.get().code(), Code::kUnsupported);
  behind_tls.stop();
  Waiting<api::AttachProcessResponse> late;
  methods.call(call, late.callback());
  EXPECT_EQ(late.get().code(), Code::kCancelled);
}

}  // namespace
}  // namespace collect::daemon
