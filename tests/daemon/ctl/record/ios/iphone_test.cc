// iPhones behind a usbmuxd of the tests: which is meant, what it says of itself, and what
// `collectctl doctor` makes of it, word for word.
#include "daemon/ctl/record/ios/iphone.h"

#include <gmock/gmock.h>
#include <poll.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <optional>
#include <sstream>
#include <thread>

#include "daemon/ctl/record/ios/iphones.h"
#include "daemon/ctl/record/ios/lockdown_message.h"
#include "tests/fakes/frame_socket.h"
#include "tests/fakes/phones/fake_lockdownd.h"
#include "tests/fakes/phones/fake_usbmuxd.h"

namespace collect::ctl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kPhone[] = "00008110-001A2B3C4D5E801E";
constexpr char kOther[] = "00008030-000A11112222802E";

class IphoneTest : public testing::Test {
 protected:
  IphoneTest() {
    ::setenv("USBMUXD_SOCKET_ADDRESS", usbmuxd_.address().c_str(), 1);
    lockdownd_.set_value("DeviceName", "Anna's iPhone");
    lockdownd_.set_value("ProductType", "iPhone15,2");
    lockdownd_.set_value("ProductVersion", "17.5.1");
    usbmuxd_.map_port(kPhone, kLockdownPort, lockdownd_.port());
    id_ = usbmuxd_.attach(kPhone);
  }
  ~IphoneTest() override { ::unsetenv("USBMUXD_SOCKET_ADDRESS"); }

  UsbmuxClient& connect() {
    client_.reset();
    client_.emplace(io_, *usbmuxd_address());
    const Status connected = client_->connect();
    EXPECT_TRUE(connected.ok()) << connected.error().message;
    return *client_;
  }
  std::string chosen(const std::string& wanted) {
    const auto device = choose_iphone(connect(), wanted);
    return device.ok() ? device->serial : device.error().message;
  }
  // Name, model and version, or what is said instead.
  std::string facts() {
    const auto facts = look_at_iphone(connect(), kPhone);
    return facts.ok() ? facts->name + "|" + facts->model + "|" + facts->version
                      : facts.error().message;
  }
  Code fault() { return look_at_iphone(connect(), kPhone).code(); }
  int doctor() {
    out_.str("");
    err_.str("");
    const PhonesReport report = look_at_iphones(udid_, 0);
    if (report.unreachable) {
      err_ << report.unreachable->message << "\n";
    } else if (json_) {
      out_ << report.json.dump() << "\n";
    } else {
      out_ << report.server << "\n" << report.text;
    }
    return report.any_works ? 0 : 1;
  }
  static std::string answer(const std::string& entries) {
    const std::string body = "<plist version=\"1.0\"><dict>" + entries + "</dict></plist>";
    return std::string(
               {0, 0, static_cast<char>(body.size() >> 8), static_cast<char>(body.size() & 0xFF)}) +
           body;
  }

  fakes::FakeLockdownd lockdownd_;
  fakes::FakeUsbmuxd usbmuxd_;
  uint32_t id_ = 0;
  WaitingIo io_;
  std::optional<UsbmuxClient> client_;
  std::string udid_;
  bool json_ = false;
  std::ostringstream out_, err_;
};

TEST_F(IphoneTest, DeviceIsTheOneThatIsMeant) {
  EXPECT_EQ(chosen(""), kPhone);
  EXPECT_EQ(chosen(kPhone), kPhone);
  EXPECT_EQ(chosen("0000"), std::string("there is no device 0000; there is ") + kPhone);
  EXPECT_EQ(choose_iphone(connect(), "0000").code(), Code::kNotFound);
  usbmuxd_.attach(kOther);
  EXPECT_EQ(chosen(kOther), kOther);
  EXPECT_EQ(chosen(kPhone), kPhone);
  EXPECT_EQ(chosen(""), std::string("several devices are there: ") + kOther + ", " + kPhone +
                            "; name one by --udid");
  EXPECT_EQ(choose_iphone(connect(), "").code(), Code::kInvalidArgument);
  EXPECT_TRUE(connect().has(kOther));
  EXPECT_FALSE(connect().has("0000"));
}

TEST_F(IphoneTest, WithoutADeviceThereIsSomethingToDo) {
  usbmuxd_.detach(id_);
  for (const char* wanted : {"", "0000"}) {
    EXPECT_EQ(chosen(wanted),
              "usbmuxd knows no device: plug the iPhone in, unlock it, and trust this computer");
    EXPECT_EQ(choose_iphone(connect(), wanted).code(), Code::kNotFound);
  }
}

TEST_F(IphoneTest, PhoneSaysWhatItIs) {
  EXPECT_EQ(facts(), "Anna's iPhone|iPhone15,2|17.5.1");
  EXPECT_THAT(lockdownd_.asked(), ElementsAre("QueryType", "GetValue DeviceName",
                                              "GetValue ProductType", "GetValue ProductVersion"));
  lockdownd_.set_type("com.apple.mobile.restored");
  EXPECT_EQ(facts(), std::string(kPhone) +
                         " does not run iOS now (com.apple.mobile.restored): wait until it has "
                         "started");
  EXPECT_EQ(fault(), Code::kUnsupported);
  usbmuxd_.unmap_port(kPhone, kLockdownPort);
  EXPECT_EQ(facts(),
            std::string(kPhone) + ": its lockdownd can't be reached: no one listens on port 62078");
  EXPECT_EQ(fault(), Code::kNotFound);
}

TEST_F(IphoneTest, RejectsInvalidAnswers) {
  lockdownd_.answer_with(std::string("\0\0\0\0", 4));
  EXPECT_EQ(facts(),
            std::string(kPhone) + ": lockdownd sent a message of 0 bytes; 1 to 65536 are expected");
  EXPECT_EQ(fault(), Code::kDamaged);
  lockdownd_.answer_with(std::string("\0\0\0\3abc", 7));
  EXPECT_THAT(facts(), HasSubstr(": lockdownd sent something that is no property list"));
  lockdownd_.answer_with(answer("<key>Request</key><string>StartService</string>"));
  EXPECT_EQ(facts(), std::string(kPhone) + ": lockdownd answered \"StartService\" to QueryType");
  EXPECT_EQ(fault(), Code::kDamaged);
}

// One that takes connections, and ends them at once.
TEST_F(IphoneTest, LockdowndThatEndsIsNotThere) {
  fakes::ListeningSocket listener;
  const auto port = static_cast<uint16_t>(std::stoul(listener.address().substr(10)));
  usbmuxd_.map_port(kPhone, kLockdownPort, port);
  std::thread ends([&] {
    for (int at = 0; at < 2; ++at) listener.accept().close();
  });
  EXPECT_EQ(facts(), std::string(kPhone) + ": lockdownd ended the connection");
  EXPECT_EQ(fault(), Code::kUnavailable);
  ends.join();
}

TEST_F(IphoneTest, ConversationEndsWithTheQuestions) {
  fakes::ListeningSocket listener;
  usbmuxd_.map_port(kPhone, kLockdownPort,
                    static_cast<uint16_t>(std::stoul(listener.address().substr(10))));
  UsbmuxClient& client = connect();
  fakes::FrameSocket silent;
  std::atomic<bool> is_asked{false};
  std::thread accepts([&] {
    silent = listener.accept();
    pollfd question{silent.handle(), POLLIN, 0};
    is_asked = poll(&question, 1, 20'000) == 1;
  });
  io_.set_interrupted([&] { return is_asked.load(); });
  const auto facts = look_at_iphone(client, kPhone);
  accepts.join();
  EXPECT_EQ(facts.code(), Code::kCancelled);
  EXPECT_EQ(facts.error().message, std::string(kPhone) + ": interrupted");
  ASSERT_TRUE(silent.is_open());
  EXPECT_TRUE(silent.ends()) << "while the client continues";
  io_.set_interrupted(nullptr);
  EXPECT_TRUE(client.has(kPhone));
}

// On a Unix socket nothing can be written any more.
TEST_F(IphoneTest, LockdowndThatIsGoneAtOnce) {
  char folder[] = "/tmp/iphoneXXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  {
    fakes::FakeUsbmuxd usbmuxd(std::string(folder) + "/usbmuxd");
    usbmuxd.map_port(kPhone, kLockdownPort, lockdownd_.port());
    usbmuxd.attach(kPhone);
    usbmuxd.end_streams_at_once(true);
    UsbmuxClient client(io_, *attach::parse_usbmux_address(usbmuxd.address()));
    ASSERT_TRUE(client.connect().ok());
    const auto facts = look_at_iphone(client, kPhone);
    EXPECT_EQ(facts.code(), Code::kUnavailable);
    EXPECT_EQ(facts.error().message, std::string(kPhone) + ": lockdownd ended the connection");
  }
  std::filesystem::remove_all(folder);
}

// It answers the first question, and is gone before the next.
TEST_F(IphoneTest, LockdowndThatEndsLater) {
  fakes::ListeningSocket listener;
  usbmuxd_.map_port(kPhone, kLockdownPort,
                    static_cast<uint16_t>(std::stoul(listener.address().substr(10))));
  std::thread answers([&] {
    fakes::FrameSocket lockdownd = listener.accept();
    const std::string said = answer(
        "<key>Request</key><string>QueryType</string><key>Type</key>"
        "<string>com.apple.mobile.lockdown</string>");
    lockdownd.send_bytes({reinterpret_cast<const uint8_t*>(said.data()), said.size()});
    lockdownd.end_sending();
    lockdownd.ends();
  });
  EXPECT_EQ(facts(), std::string(kPhone) + ": lockdownd ended the connection");
  client_.reset();
  answers.join();
}

TEST_F(IphoneTest, VersionsAndTexts) {
  EXPECT_TRUE(check_ios("A", {"", "", "15.0"}).ok());
  EXPECT_TRUE(check_ios("A", {"", "", "26"}).ok());
  EXPECT_TRUE(check_ios("A", {"", "", ""}).ok()) << "it does not say";
  EXPECT_TRUE(check_ios("A", {"", "", "beta"}).ok());
  const Status old = check_ios("A", {"", "", "14.8.1"});
  EXPECT_EQ(old.code(), Code::kUnsupported);
  EXPECT_EQ(old.error().message, "A runs iOS 14.8.1; the agent needs iOS 15: take a newer phone");
  EXPECT_FALSE(check_ios("A", {"", "", "1"}).ok());
  EXPECT_EQ(iphone_text("A", {"Anna's", "iPhone15,2", "17.5.1"}),
            "A (Anna's, iPhone15,2, iOS 17.5.1)");
  EXPECT_EQ(iphone_text("A", {"", "", "17"}), "A (iOS 17)");
  EXPECT_EQ(iphone_text("A", {"Anna's", "", ""}), "A (Anna's)");
  EXPECT_EQ(iphone_text("A\x1b", {"", "", ""}), "A\\x1b");
  EXPECT_EQ(attach::port_endpoint(7720), "tcp:7720");
}

TEST_F(IphoneTest, AgentsAreFoundByTheirPorts) {
  EXPECT_THAT(*connect().find_agents(kPhone), IsEmpty());
  fakes::ListeningSocket first, second;
  const auto port_of = [](const fakes::ListeningSocket& listener) {
    return static_cast<uint16_t>(std::stoul(listener.address().substr(10)));
  };
  usbmuxd_.map_port(kPhone, 7720, port_of(first));
  usbmuxd_.map_port(kPhone, 7729, port_of(second));
  usbmuxd_.map_port(kPhone, 7730, port_of(second));
  EXPECT_THAT(*connect().find_agents(kPhone), ElementsAre(7720, 7729));
  EXPECT_TRUE(connect().open(kPhone, 7720).ok());
  EXPECT_EQ(connect().open(kPhone, 7721).code(), Code::kNotFound);
}

TEST_F(IphoneTest, DevicesComeAndGoWhileItWorks) {
  UsbmuxClient& client = connect();
  ASSERT_TRUE(client.has(kPhone));
  EXPECT_EQ(client.devices().size(), 1u);
  usbmuxd_.detach(id_);
  EXPECT_TRUE(io_.wait([&] { return !client.has(kPhone); }, std::chrono::seconds(20), "").ok());
  usbmuxd_.attach(kPhone);
  EXPECT_TRUE(io_.wait([&] { return client.has(kPhone); }, std::chrono::seconds(20), "").ok());
}

TEST_F(IphoneTest, DoctorSaysWhatThereIs) {
  EXPECT_EQ(doctor(), 0);
  const std::string head = out_.str().substr(0, out_.str().find('\n') + 1);
  EXPECT_EQ(head, usbmuxd_.address() + "\n");
  const std::string table =
      head +
      "DEVICE                     NAME           MODEL       IOS     VIA  AGENTS\n"
      "00008110-001A2B3C4D5E801E  Anna's iPhone  iPhone15,2  17.5.1  usb  ";
  EXPECT_EQ(out_.str(), table + "none\n" + kPhone +
                            ": no app with an agent runs: start it from Xcode with "
                            "COLLECT_LISTEN=tcp:7720-7729, as collectctl ios run UDID BUNDLE "
                            "says\n");
  EXPECT_EQ(err_.str(), "");
  fakes::ListeningSocket agent;
  const auto port = static_cast<uint16_t>(std::stoul(agent.address().substr(10)));
  usbmuxd_.map_port(kPhone, 7721, port);
  EXPECT_EQ(doctor(), 0);
  EXPECT_EQ(out_.str(), table + "7721\n");
  usbmuxd_.map_port(kPhone, 7724, port);
  EXPECT_EQ(doctor(), 0);
  EXPECT_EQ(out_.str(), table + "7721, 7724\n");
  json_ = true;
  EXPECT_EQ(doctor(), 0);
  const std::string start = "{\"usbmuxd\":\"" + usbmuxd_.address() + "\",\"devices\":[";
  EXPECT_EQ(out_.str(),
            start +
                "{\"udid\":\"00008110-001A2B3C4D5E801E\",\"connection\":\"usb\",\"name\":"
                "\"Anna's iPhone\",\"model\":\"iPhone15,2\",\"ios\":\"17.5.1\","
                "\"agent_ports\":[7721,7724]}]}\n");
  usbmuxd_.detach(id_);
  EXPECT_EQ(doctor(), 1);
  EXPECT_EQ(out_.str(), start + "]}\n");
}

TEST_F(IphoneTest, OnePhoneThatCanBeRecordedOnIsEnough) {
  fakes::FakeLockdownd old;
  old.set_value("ProductVersion", "14.8");
  usbmuxd_.map_port(kOther, kLockdownPort, old.port());
  usbmuxd_.attach(kOther, "Network");
  EXPECT_EQ(doctor(), 0);
  EXPECT_THAT(out_.str(),
              HasSubstr("\n00008030-000A11112222802E  ?              ?           14.8    "
                        "network  none\n"));
  udid_ = kOther;
  EXPECT_EQ(doctor(), 1);
  EXPECT_THAT(out_.str(), testing::Not(HasSubstr(kPhone)));
}

// A phone whose ports can't be asked is in the way, even if lockdownd answered.
TEST_F(IphoneTest, PortsThatCannotBeAskedAreInTheWay) {
  lockdownd_.on_question([this] { usbmuxd_.answer_connects_with(1); });
  EXPECT_EQ(doctor(), 1);
  json_ = true;
  usbmuxd_.answer_connects_with(0);
  EXPECT_EQ(doctor(), 1);
  EXPECT_THAT(out_.str(), testing::AllOf(HasSubstr("\"ios\":\"17.5.1\",\"agent_ports\":[],"),
                                         HasSubstr("\"obstacle\":\"")));
}

TEST_F(IphoneTest, UsbmuxdThatListsNothingIsTooOld) {
  usbmuxd_.answer_lists_with(1);
  client_.emplace(io_, *usbmuxd_address());
  const Status connected = client_->connect();
  EXPECT_EQ(connected.code(), Code::kUnsupported);
  EXPECT_EQ(connected.error().message,
            "usbmuxd at " + usbmuxd_.address() + " lists no devices: install a newer one");
}

// No one can wait for a device without a name.
TEST_F(IphoneTest, DeviceWithoutASerialNumberIsPassedBy) {
  usbmuxd_.attach("");
  EXPECT_EQ(chosen(""), kPhone);
}

TEST_F(IphoneTest, DoctorNamesWhatIsInTheWay) {
  lockdownd_.set_value("ProductVersion", "14.8");
  EXPECT_EQ(doctor(), 1);
  EXPECT_THAT(out_.str(), HasSubstr(std::string("\n") + kPhone + ": " + kPhone +
                                    " runs iOS 14.8; the agent needs iOS 15: take a newer "
                                    "phone\n"));
  usbmuxd_.unmap_port(kPhone, kLockdownPort);
  EXPECT_EQ(doctor(), 0) << "recording needs nothing of it";
  EXPECT_THAT(out_.str(), HasSubstr("  ?     ?      ?    usb  none\n"));
  EXPECT_TRUE(out_.str().ends_with(std::string(kPhone) + ": " + kPhone +
                                   ": its lockdownd can't be reached: no one listens on port "
                                   "62078\n"))
      << out_.str();
  udid_ = "0000";
  EXPECT_EQ(doctor(), 1);
  EXPECT_THAT(out_.str(),
              HasSubstr("no device: plug an iPhone in, unlock it, and trust this computer\n"));
  udid_ = kPhone;
  EXPECT_EQ(doctor(), 0);
  const std::string address = usbmuxd_.address();
  usbmuxd_.stop();
  EXPECT_EQ(doctor(), 1);
  EXPECT_EQ(out_.str(), "");
  EXPECT_EQ(err_.str(), "no one answers at " + address +
                            ": usbmuxd has ended; it starts again when an iPhone is plugged in, or "
                            "by: systemctl start usbmuxd\n");
  ::setenv("USBMUXD_SOCKET_ADDRESS", "192.0.2.1:27015", 1);
  EXPECT_EQ(doctor(), 1);
  EXPECT_THAT(err_.str(), HasSubstr("192.0.2.1"));
}

}  // namespace
}  // namespace collect::ctl
