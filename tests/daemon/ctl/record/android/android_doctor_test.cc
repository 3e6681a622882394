// What `collectctl doctor` finds of phones of every kind, word for word.
#include <gmock/gmock.h>
#include <stdlib.h>

#include <sstream>

#include "daemon/ctl/record/android/android_phones.h"
#include "tests/daemon/ctl/record/android/phone_fixture.h"

namespace collect::ctl {
namespace {

using ::testing::HasSubstr;

class AndroidDoctorTest : public PhoneTest {
 protected:
  AndroidDoctorTest() {
    for (const char* name : {"ADB_SERVER_SOCKET", "ANDROID_ADB_SERVER_ADDRESS"}) ::unsetenv(name);
    ::setenv("ANDROID_ADB_SERVER_PORT", std::to_string(server_.port()).c_str(), 1);
    std::string head = "\177ELF" + std::string(16, '\0');
    head[18] = 62;
    phone_.write(library_, head);
  }
  ~AndroidDoctorTest() override { ::unsetenv("ANDROID_ADB_SERVER_PORT"); }

  int doctor() {
    out_.str("");
    err_.str("");
    const PhonesReport report = look_at_android_phones(serial_, library_, 0);
    if (report.unreachable) {
      err_ << report.unreachable->message << "\n";
    } else if (json_) {
      out_ << report.json.dump() << "\n";
    } else {
      out_ << report.server << "\n" << report.text;
    }
    return report.any_works ? 0 : 1;
  }
  std::string first_line() const { return client_->address() + ", version 1.0.41\n"; }

  const std::string library_ = phone_ / "agent.so";
  std::string serial_;
  bool json_ = false;
  std::ostringstream out_, err_;
};

TEST_F(AndroidDoctorTest, PhoneThatCanBeRecordedOn) {
  EXPECT_EQ(doctor(), 0);
  EXPECT_EQ(out_.str(), first_line() +
                            "DEVICE  MODEL      STATE   SDK  ABI     AGENT\n"
                            "R58M    Sim Phone  device  34   x86_64  " +
                            library_ + "\n");
  EXPECT_EQ(err_.str(), "");
  phone_.set_property("ro.product.model", "");
  EXPECT_EQ(doctor(), 0);
  EXPECT_THAT(out_.str(), HasSubstr("Sim_Phone")) << "the server's word";
  json_ = true;
  EXPECT_EQ(doctor(), 0);
  EXPECT_EQ(out_.str(), "{\"adb_server\":\"" + client_->address() +
                            "\",\"adb_version\":41,\"devices\":[{\"serial\":\"R58M\",\"state\":"
                            "\"device\",\"model\":\"Sim_Phone\",\"sdk\":34,\"abi\":\"x86_64\","
                            "\"agent\":\"" +
                            library_ + "\"}]}\n");
}

TEST_F(AndroidDoctorTest, EachObstacleIsASentence) {
  const auto obstacle = [&](int code = 1) {
    json_ = false;
    EXPECT_EQ(doctor(), code);
    const std::string text = out_.str();
    const size_t at = text.find("\nR58M: ");
    return at == std::string::npos ? "" : text.substr(at + 1);
  };
  phone_.set_property("ro.build.version.sdk", "28");
  EXPECT_EQ(obstacle(),
            "R58M: R58M runs Android of API level 28; the agent needs 29 (Android 10): take a "
            "newer phone or emulator\n");
  EXPECT_THAT(out_.str(), HasSubstr("  28   x86_64  none\n"));
  phone_.set_property("ro.build.version.sdk", "");
  EXPECT_EQ(obstacle(), "R58M: R58M: it does not say what Android it runs\n");
  EXPECT_THAT(out_.str(), HasSubstr("  ?    ?    none\n"));
  phone_.set_property("ro.build.version.sdk", "34");
  phone_.set_property("ro.product.cpu.abi", "arm64-v8a");
  EXPECT_EQ(obstacle(), "R58M: " + library_ +
                            " is for x86_64, and the app runs as arm64-v8a: name the agent for "
                            "that by --agent FILE\n");
  fakes::FakePhone old;
  old.features = "cmd";
  server_.plug("R58M", old);
  EXPECT_EQ(obstacle(),
            "R58M: R58M: it has no shell that says how commands end (shell,v2): Android 10 is "
            "needed\n");
  server_.set_state("R58M", "unauthorized");
  EXPECT_THAT(obstacle(), HasSubstr("confirm the prompt"));
  EXPECT_THAT(out_.str(), HasSubstr("  unauthorized  ?    ?    none\n"));
  json_ = true;
  EXPECT_EQ(doctor(), 1);
  EXPECT_THAT(out_.str(), HasSubstr("[{\"serial\":\"R58M\",\"state\":\"unauthorized\",\"model\":"
                                    "\"Sim_Phone\","
                                    "\"obstacle\":\""));
  EXPECT_THAT(out_.str(), HasSubstr("confirm the prompt"));
}

TEST_F(AndroidDoctorTest, OneThatCanBeRecordedOnIsEnough) {
  fakes::FakePhone locked;
  locked.state = "unauthorized";
  locked.attributes = "usb:1-2";
  server_.plug("A1", locked);
  server_.plug("Z9", locked);
  EXPECT_EQ(doctor(), 0);
  EXPECT_THAT(out_.str(),
              ::testing::AllOf(HasSubstr("\nA1 "), HasSubstr("\nR58M "), HasSubstr("\nZ9 ")));
  serial_ = "A1";
  EXPECT_EQ(doctor(), 1);
  EXPECT_THAT(out_.str(), ::testing::Not(HasSubstr("R58M")));
  serial_ = "R58M";
  EXPECT_EQ(doctor(), 0);
  serial_ = "none";
  EXPECT_EQ(doctor(), 1);
  EXPECT_EQ(out_.str(), first_line() +
                            "no device: plug a phone in, and allow USB debugging in its developer "
                            "options\n");
  json_ = true;
  EXPECT_EQ(doctor(), 1);
  EXPECT_EQ(out_.str(),
            "{\"adb_server\":\"" + client_->address() + "\",\"adb_version\":41,\"devices\":[]}\n");
}

TEST_F(AndroidDoctorTest, WithoutAServerThereIsNothingToSay) {
  const std::string address = client_->address();
  server_.stop();
  EXPECT_EQ(doctor(), 1);
  EXPECT_EQ(out_.str(), "");
  EXPECT_EQ(err_.str(), "no adb server at " + address + ": start it with `adb start-server`\n");
  ::setenv("ANDROID_ADB_SERVER_PORT", "nowhere", 1);
  EXPECT_EQ(doctor(), 1);
  EXPECT_THAT(err_.str(), HasSubstr("ANDROID_ADB_SERVER_PORT"));
}

}  // namespace
}  // namespace collect::ctl
