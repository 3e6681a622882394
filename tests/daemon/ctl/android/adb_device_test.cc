// One device behind an adb server of the tests: shell commands and their limits.
#include "daemon/ctl/android/adb_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/attach/adb_address.h"
#include "tests/fakes/fake_adb_server.h"
#include "tests/fakes/fake_phone.h"

namespace collect::ctl {
namespace {

using ::testing::HasSubstr;

class AdbDeviceTest : public testing::Test {
 protected:
  AdbDeviceTest() {
    server_.start();
    fakes::FakePhone phone;
    phone.folder = phone_.path();
    server_.plug("R58M", phone);
    client_.emplace(*attach::adb_address("tcp:" + server_.address(),
                                         [](const char*) -> const char* { return nullptr; }));
    device_.emplace(*client_, "R58M", "Sim");
  }

  fakes::FakePhoneFolder phone_;
  fakes::FakeAdbServer server_;
  std::optional<AdbClient> client_;
  std::optional<AdbDevice> device_;
};

TEST_F(AdbDeviceTest, OutputErrorsCodeAndInput) {
  const auto said = device_->shell("cat; echo oops >&2; exit 3", "some input");
  ASSERT_TRUE(said.ok()) << said.error().message;
  EXPECT_EQ(said->output, "some input");
  EXPECT_EQ(said->errors, "oops\n");
  EXPECT_EQ(said->exit_code, 3);
  EXPECT_EQ(*device_->output_of("echo a line"), "a line");
  const auto failed = device_->output_of("echo it is so >&2; false");
  EXPECT_EQ(failed.code(), Code::kIo);
  EXPECT_EQ(failed.error().message, "R58M: it is so");
  EXPECT_EQ(device_->output_of("echo 'No space left on device'; false").code(), Code::kNoSpace);
}

TEST_F(AdbDeviceTest, AnswersInPiecesAreTheSame) {
  server_.split_answers(1);
  EXPECT_EQ(*client_->version(), 41u);
  const auto devices = client_->devices();
  ASSERT_TRUE(devices.ok());
  ASSERT_EQ(devices->size(), 1u);
  EXPECT_EQ((*devices)[0].model, "Sim_Phone");
  EXPECT_TRUE(device_->check_shell().ok());
  EXPECT_EQ(*device_->output_of("echo a line"), "a line");
}

TEST_F(AdbDeviceTest, OutputHasALimit) {
  const std::string most = std::to_string(kMaxShellOutputBytes);
  const auto just = device_->shell("head -c " + most + " /dev/zero");
  ASSERT_TRUE(just.ok()) << just.error().message;
  EXPECT_EQ(just->output.size(), kMaxShellOutputBytes);
  const auto more =
      device_->shell("head -c " + std::to_string(kMaxShellOutputBytes + 1) + " /dev/zero");
  EXPECT_EQ(more.code(), Code::kLimit);
  EXPECT_THAT(more.error().message, HasSubstr("it says more than " + most + " bytes"));
  // One that never ends is ended.
  EXPECT_EQ(device_->shell("cat /dev/zero").code(), Code::kLimit);
  const auto errors = device_->shell("head -c 100000 /dev/zero | tr '\\000' x >&2");
  ASSERT_TRUE(errors.ok());
  EXPECT_EQ(errors->errors.size(), 1024u);
}

TEST_F(AdbDeviceTest, ADeviceThatIsNotThere) {
  const AdbDevice other(*client_, "HT12", "");
  const auto said = other.shell("true");
  EXPECT_EQ(said.code(), Code::kUnavailable);
  EXPECT_THAT(said.error().message, HasSubstr("HT12: "));
  server_.stop();
  EXPECT_EQ(device_->shell("true").code(), Code::kUnavailable);
}

TEST_F(AdbDeviceTest, AnInterruptionEndsAWait) {
  bool interrupted = false;
  client_->io().set_interrupted([&] { return interrupted; });
  const auto stream = device_->follow(
      "echo begun; exec sleep 60", [&](const attach::ShellPacket&) { interrupted = true; },
      [](const Status&) {});
  ASSERT_TRUE(stream.ok());
  EXPECT_EQ(device_->shell("exec sleep 60").code(), Code::kCancelled);
  (*stream)->close();
}

}  // namespace
}  // namespace collect::ctl
