// One device behind an adb server of the tests: shell commands and their limits.
#include "daemon/ctl/record/android/adb/adb_device.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <thread>
#include <vector>

#include "tests/daemon/ctl/record/android/phone_fixture.h"

namespace collect::ctl {
namespace {

using ::testing::HasSubstr;

class AdbDeviceTest : public PhoneTest {
 protected:
  // The server sees the end of every connection, soon.
  bool all_end() {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (server_.connections() != 0 && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return server_.connections() == 0;
  }
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

TEST_F(AdbDeviceTest, VersionIsAHexadecimalNumber) {
  EXPECT_EQ(*client_->version(), 41u);
  server_.answer_version_with("ff");
  EXPECT_EQ(*client_->version(), 255u);
  for (const std::string& bad : {std::string(), std::string("x29"), std::string("29x"),
                                 std::string(" 29"), std::string("100000000")}) {
    server_.answer_version_with(bad);
    const auto version = client_->version();
    EXPECT_EQ(version.code(), Code::kDamaged) << bad;
    EXPECT_EQ(message_of(version),
              "adb server at " + client_->address() + ": \"" + bad + "\" is no version");
  }
  server_.stop();
  EXPECT_EQ(client_->version().code(), Code::kUnavailable);
  EXPECT_EQ(client_->devices().code(), Code::kUnavailable);
}

TEST_F(AdbDeviceTest, OutputHasALimit) {
  const std::string most = std::to_string(kMaxShellOutputBytes);
  const auto just = device_->shell("head -c " + most + " /dev/zero");
  ASSERT_TRUE(just.ok()) << just.error().message;
  EXPECT_EQ(just->output.size(), kMaxShellOutputBytes);
  EXPECT_TRUE(just->has_ended) << "its exit code is there too";
  const auto more =
      device_->shell("head -c " + std::to_string(kMaxShellOutputBytes + 1) + " /dev/zero");
  EXPECT_EQ(more.code(), Code::kLimit);
  EXPECT_THAT(more.error().message, HasSubstr("it says more than " + most + " bytes"));
  // One that never ends is ended, as soon as it says a byte too much.
  EXPECT_EQ(device_->shell("cat /dev/zero").code(), Code::kLimit);
  EXPECT_EQ(device_
                ->shell("head -c " + std::to_string(kMaxShellOutputBytes + 1) +
                        " /dev/zero; exec sleep 600")
                .code(),
            Code::kLimit);
  const auto errors = device_->shell("head -c 100000 /dev/zero | tr '\\000' x >&2");
  ASSERT_TRUE(errors.ok());
  EXPECT_EQ(errors->errors.size(), 1024u);
}

TEST_F(AdbDeviceTest, DeviceThatIsNotThere) {
  const AdbDevice other(*client_, "HT12", "");
  const auto said = other.shell("true");
  EXPECT_EQ(said.code(), Code::kUnavailable);
  EXPECT_THAT(said.error().message, HasSubstr("HT12: "));
  server_.stop();
  EXPECT_EQ(device_->shell("true").code(), Code::kUnavailable);
}

TEST_F(AdbDeviceTest, InterruptionEndsAWait) {
  bool interrupted = false;
  client_->io().set_interrupted([&] { return interrupted; });
  const auto stream = device_->follow(
      "echo begun; exec sleep 60", [&](const attach::ShellPacket&) { interrupted = true; },
      [](const Status&) {});
  ASSERT_TRUE(stream.ok());
  EXPECT_EQ(device_->shell("exec sleep 60").code(), Code::kCancelled);
  (*stream)->close();
  EXPECT_TRUE(all_end());
}

// What is under way keeps no connection: the command that waits for the phone continues.
TEST_F(AdbDeviceTest, InterruptionEndsWhatIsUnderWay) {
  const std::string here = phone_ / "here";
  phone_.write(here, std::string(1 << 20, 'x'));
  bool interrupted = false;
  client_->io().set_interrupted([&] { return interrupted; });
  const Status pushed = device_->push(here, "/data/local/tmp/there", 0100600,
                                      [&](uint64_t, uint64_t) { interrupted = true; });
  EXPECT_EQ(pushed.code(), Code::kCancelled);
  EXPECT_EQ(pushed.error().message, "R58M: interrupted");
  EXPECT_TRUE(all_end());
  const std::string back = phone_ / "back";  // it is there as soon as the phone is asked
  client_->io().set_interrupted([&] { return std::filesystem::exists(back); });
  phone_.write(phone_ / "tmp/there", std::string(10 << 20, 'x'));
  const Status pulled = device_->pull("/data/local/tmp/there", back, 10 << 20);
  EXPECT_EQ(pulled.code(), Code::kCancelled);
  EXPECT_EQ(pulled.error().message, "R58M: interrupted");
  EXPECT_TRUE(all_end());
  client_->io().set_interrupted([] { return true; });
  EXPECT_EQ(client_->version().code(), Code::kCancelled);
  EXPECT_TRUE(all_end());
}

// Also where there is input on its way that no one takes.
TEST_F(AdbDeviceTest, InterruptedCommandKeepsNoConnection) {
  client_->io().set_interrupted([this] { return std::filesystem::exists(phone_ / "begun"); });
  const auto said =
      device_->shell("touch \"$PHONE/begun\"; until [ -e \"$PHONE/enough\" ]; do sleep 0.01; done",
                     std::string(10 << 20, 'i'));
  EXPECT_EQ(said.code(), Code::kCancelled);
  phone_.write(phone_ / "enough", "");
  EXPECT_TRUE(all_end());
}

TEST_F(AdbDeviceTest, ReturnsCommandOutputOrItsError) {
  EXPECT_EQ(*device_->output_of("printf 'a\\n b\\r\\n\\r\\n'"), "a\n b");
  EXPECT_EQ(*device_->output_of("true"), "");
  EXPECT_EQ(device_->output_of("exit 7").error().message, "R58M: exit 7: exit code 7");
  EXPECT_EQ(device_->output_of("exit 7").code(), Code::kIo);
  EXPECT_EQ(device_->output_of("echo out; echo err >&2; false").error().message, "R58M: err");
  EXPECT_EQ(device_->output_of("echo out; false").error().message, "R58M: out");
  EXPECT_EQ(*device_->output_of("cat", "typed\n"), "typed");
  const std::string much(100'000, 'i');  // several packets
  EXPECT_EQ(device_->shell("cat", much)->output, much);
  EXPECT_EQ(code_of_words("write failed: No space left on device"), Code::kNoSpace);
  EXPECT_EQ(code_of_words("Permission denied"), Code::kIo);
}

TEST_F(AdbDeviceTest, ShellHasToSayHowCommandsEnd) {
  const auto with = [&](const std::string& features) {
    fakes::FakePhone phone;
    phone.features = features;
    server_.plug("R58M", phone);
    const Status status = device_->check_shell();
    return status.ok() ? std::string() : status.error().message;
  };
  const std::string none =
      "R58M: it has no shell that says how commands end (shell,v2): Android 10 is needed";
  EXPECT_EQ(with("shell_v2"), "");
  EXPECT_EQ(with("cmd,shell_v2"), "");
  EXPECT_EQ(with("shell_v2,cmd"), "");
  EXPECT_EQ(with("cmd"), none);
  EXPECT_EQ(with("shell_v22,not_shell_v2"), none);
  EXPECT_EQ(device_->check_shell().code(), Code::kUnsupported);
  server_.stop();
  EXPECT_EQ(device_->check_shell().code(), Code::kUnavailable);
  EXPECT_EQ(device_->check_shell().error().message,
            "no adb server at " + client_->address() + ": start it with `adb start-server`");
}

// "R58M", or what is said instead.
std::string chosen(AdbClient& client, const std::string& wanted, const char* variable = nullptr) {
  const auto device = AdbDevice::choose(client, wanted, variable);
  return device.ok() ? device->serial() + " " + device->model() : device.error().message;
}

TEST_F(AdbDeviceTest, DeviceIsTheOneThatIsMeant) {
  EXPECT_EQ(chosen(*client_, ""), "R58M Sim_Phone") << "the only one";
  EXPECT_EQ(chosen(*client_, "R58M"), "R58M Sim_Phone");
  EXPECT_EQ(chosen(*client_, "", "R58M"), "R58M Sim_Phone");
  EXPECT_EQ(chosen(*client_, "", ""), "R58M Sim_Phone") << "an empty variable is none";
  EXPECT_EQ(chosen(*client_, "R58M", "HT12"), "R58M Sim_Phone") << "the option goes first";
  EXPECT_EQ(chosen(*client_, "HT12", "R58M"), "there is no device HT12; there is R58M (Sim_Phone)");
  EXPECT_EQ(chosen(*client_, "", "HT12"),
            "there is no device HT12 (from ANDROID_SERIAL); there is R58M (Sim_Phone)");
  fakes::FakePhone plain;
  plain.attributes = "usb:1-2";
  server_.plug("HT12", plain);
  EXPECT_EQ(chosen(*client_, "HT12"), "HT12 ");
  EXPECT_EQ(chosen(*client_, ""),
            "several devices can be used: HT12, R58M (Sim_Phone); say which one with --serial or "
            "ANDROID_SERIAL");
  EXPECT_EQ(AdbDevice::choose(*client_, "", nullptr).code(), Code::kInvalidArgument);
  server_.set_state("HT12", "unauthorized");
  EXPECT_EQ(chosen(*client_, ""), "R58M Sim_Phone") << "the only one that can be used";
  EXPECT_THAT(chosen(*client_, "HT12"), testing::StartsWith("HT12 can't be used: "));
  EXPECT_THAT(chosen(*client_, "HT12"), HasSubstr("; unlock the phone and confirm the prompt"));
  EXPECT_EQ(AdbDevice::choose(*client_, "HT12", nullptr).code(), Code::kUnavailable);
  EXPECT_EQ(chosen(*client_, "none"),
            "there is no device none; there is HT12 (unauthorized), R58M (Sim_Phone)");
  EXPECT_EQ(AdbDevice::choose(*client_, "none", nullptr).code(), Code::kNotFound);
  server_.set_state("R58M", "offline");
  const std::string both = chosen(*client_, "");
  EXPECT_THAT(both, testing::StartsWith("HT12 can't be used: "));
  EXPECT_THAT(both, HasSubstr("; R58M can't be used: "));
  EXPECT_EQ(AdbDevice::choose(*client_, "", nullptr).code(), Code::kUnavailable);
  server_.unplug("HT12");
  server_.unplug("R58M");
  EXPECT_EQ(chosen(*client_, ""),
            "the adb server knows no device: plug a phone in, and allow USB debugging in its "
            "developer options");
  EXPECT_EQ(AdbDevice::choose(*client_, "", nullptr).code(), Code::kNotFound);
  server_.stop();
  EXPECT_EQ(AdbDevice::choose(*client_, "", nullptr).code(), Code::kUnavailable);
}

TEST_F(AdbDeviceTest, FilesGoThereAndBackAgain) {
  const std::string here = phone_ / "here";
  const std::string back = phone_ / "back";
  for (const size_t bytes :
       {size_t{0}, size_t{1}, size_t{65'536}, size_t{65'537}, size_t{200'000}}) {
    std::string text(bytes, 'x');
    for (size_t at = 0; at < bytes; at += 997) text[at] = static_cast<char>('a' + at % 26);
    phone_.write(here, text);
    std::vector<std::pair<uint64_t, uint64_t>> progress;
    const Status pushed =
        device_->push(here, "/data/local/tmp/there", 0100600,
                      [&](uint64_t sent, uint64_t total) { progress.emplace_back(sent, total); });
    ASSERT_TRUE(pushed.ok()) << pushed.error().message;
    EXPECT_EQ(phone_.read(phone_ / "tmp/there"), text);
    ASSERT_FALSE(progress.empty());
    EXPECT_EQ(progress.back(), (std::pair<uint64_t, uint64_t>{bytes, bytes}));
    ASSERT_TRUE(device_->pull("/data/local/tmp/there", back, bytes).ok());
    EXPECT_EQ(phone_.read(back), text);
    if (bytes == 0) continue;
    const Status too_large = device_->pull("/data/local/tmp/there", back, bytes - 1);
    EXPECT_EQ(too_large.code(), Code::kLimit);
    EXPECT_EQ(too_large.error().message, "R58M: /data/local/tmp/there: it has more than " +
                                             std::to_string(bytes - 1) + " bytes");
  }
  EXPECT_TRUE(device_->push(here, "/data/local/tmp/there", 0100600, nullptr).ok());
}

TEST_F(AdbDeviceTest, FilesThatCannotGoSayWhy) {
  const std::string here = phone_ / "here";
  const Status missing = device_->push(here, "/data/local/tmp/x", 0100600, nullptr);
  EXPECT_EQ(missing.code(), Code::kIo);
  EXPECT_EQ(missing.error().message, here + ": can't be read");
  phone_.write(here, std::string(200'000, 'x'));
  const Status no_folder = device_->push(here, "/data/local/tmp/none/x", 0100600, nullptr);
  EXPECT_EQ(no_folder.code(), Code::kIo);
  EXPECT_EQ(no_folder.error().message,
            "R58M: /data/local/tmp/none/x: couldn't create file: No such file or directory");
  const Status nothing = device_->pull("/data/local/tmp/none", phone_ / "back", 100);
  EXPECT_EQ(nothing.code(), Code::kIo);
  EXPECT_EQ(nothing.error().message,
            "R58M: /data/local/tmp/none: open failed: No such file or directory");
  EXPECT_EQ(device_->pull("/data/local/tmp/none", phone_ / "no/folder", 100).error().message,
            phone_ / "no/folder" + ": can't be written");
  server_.fail_next("sync:", "no sync today");
  EXPECT_EQ(device_->push(here, "/data/local/tmp/x", 0100600, nullptr).code(), Code::kNotFound);
  server_.fail_next("sync:", "no sync today");
  const Status refused = device_->pull("/data/local/tmp/x", phone_ / "back", 100);
  EXPECT_EQ(refused.code(), Code::kNotFound);
  EXPECT_EQ(refused.error().message.substr(0, 6), "R58M: ");
  EXPECT_THAT(refused.error().message, HasSubstr("no sync today"));
  server_.limit_pushes("R58M", {.space = 100'000});
  const Status full = device_->push(here, "/data/local/tmp/x", 0100600, nullptr);
  EXPECT_EQ(full.code(), Code::kNoSpace);
  EXPECT_EQ(full.error().message, "R58M: /data/local/tmp/x: write failed: No space left on device");
  server_.limit_pushes("R58M", {.cable = 100'000});
  const Status torn = device_->push(here, "/data/local/tmp/x", 0100600, nullptr);
  EXPECT_EQ(torn.code(), Code::kUnavailable);
  EXPECT_THAT(torn.error().message,
              HasSubstr("R58M: /data/local/tmp/x: the connection to the device ended after "));
}

TEST_F(AdbDeviceTest, DeviceThatGoesMeanwhileIsSaid) {
  std::thread cable([this] {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!std::filesystem::exists(phone_ / "begun") &&
           std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    server_.unplug("R58M");
  });
  const auto said = device_->shell("touch \"$PHONE/begun\"; exec sleep 60");
  cable.join();
  EXPECT_EQ(said.code(), Code::kUnavailable);
  EXPECT_EQ(said.error().message, "R58M: the connection to the device ended");
}

}  // namespace
}  // namespace collect::ctl
