// The source against a usbmuxd that does what a test says.
#include "daemon/attach/usbmux/usbmux_source.h"

#include <asio/read.hpp>
#include <asio/write.hpp>

#include "daemon/attach/usbmux/usbmux_opens.h"
#include "tests/daemon/attach/closing_listener.h"
#include "tests/daemon/attach/usbmux_fixture.h"

namespace collect::attach {
namespace {

using fakes::FakeUsbmuxd;

const std::string kPhone = "00008110-001A2B3C4D5E801E";
const std::string kOther = "00008030-000A11112222802E";

template <class Stream>
std::string read_exactly(Stream& socket, size_t count) {
  std::string text(count, '\0');
  std::error_code error;
  text.resize(asio::read(socket, asio::buffer(text), error));
  return text;
}

template <class Stream>
bool ends(Stream& socket) {
  std::error_code error;
  char byte = 0;
  while (asio::read(socket, asio::buffer(&byte, 1), error) == 1) {
  }
  return error == asio::error::eof || error == asio::error::connection_reset;
}

TEST_F(UsbmuxSourceTest, DevicesComeAndGo) {
  FakeUsbmuxd usbmuxd(socket_path());
  const uint32_t id = usbmuxd.attach(kPhone);
  start(usbmuxd.address());
  ASSERT_TRUE(wait_devices(1));
  EXPECT_TRUE(connected());
  EXPECT_EQ(servers_.back().via, "usbmux");
  EXPECT_EQ(servers_.back().status, "");
  EXPECT_EQ(devices()[0].serial, kPhone);
  EXPECT_EQ(devices()[0].connection, "usb");
  EXPECT_EQ(devices()[0].reported_state, "attached");
  EXPECT_TRUE(devices()[0].is_usable);
  usbmuxd.attach(kOther);
  ASSERT_TRUE(wait_devices(2));
  usbmuxd.detach(id);
  ASSERT_TRUE(wait_devices(1));
  EXPECT_EQ(devices()[0].serial, kOther);
}

TEST_F(UsbmuxSourceTest, StreamOverTcpCarriesBytesBothWays) {
  FakeUsbmuxd usbmuxd;
  App app(io_);
  usbmuxd.attach(kPhone);
  usbmuxd.map_port(kPhone, 7720, app.port());
  start(usbmuxd.address());
  ASSERT_TRUE(wait_devices(1));
  auto stream = open(kPhone, "tcp:7720");
  ASSERT_TRUE(stream.ok());
  auto peer = app.accept();
  std::string sent(1u << 20, '\0');
  for (size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<char>(i * 31 >> 3);
  std::string came;
  std::thread reader([&] { came = read_exactly(peer, sent.size()); });
  asio::write(*stream, asio::buffer(sent));
  reader.join();
  EXPECT_TRUE(came == sent);
  asio::write(peer, asio::buffer(std::string("back")));
  EXPECT_EQ(read_exactly(*stream, 4), "back");
}

// An answer is cut at any byte, with any bytes of the device right behind it.
TEST_F(UsbmuxSourceTest, AnswersSplitAtEveryByte) {
  FakeUsbmuxd usbmuxd(socket_path());
  App app(io_);
  usbmuxd.attach(kPhone);
  usbmuxd.map_port(kPhone, 7720, app.port());
  usbmuxd.greet_with("first bytes of the device");
  const size_t longest =
      FakeUsbmuxd::message(0, FakeUsbmuxd::attached_dictionary(1, kPhone, "USB")).size() + 1;
  for (size_t split = 1; split < longest; ++split) {
    SCOPED_TRACE(split);
    usbmuxd.split_answers_at(split);
    lists_.clear();
    servers_.clear();
    start(usbmuxd.address());
    ASSERT_TRUE(wait_devices(1));
    auto stream = open(kPhone, "tcp:7720");
    ASSERT_TRUE(stream.ok()) << to_string(stream.error());
    EXPECT_EQ(read_exactly(*stream, 25), "first bytes of the device");
    source_->stop();
  }
}

TEST_F(UsbmuxSourceTest, FindsThePortsOnWhichAppsListen) {
  FakeUsbmuxd usbmuxd(socket_path());
  App first(io_), second(io_), beyond(io_);
  usbmuxd.attach(kPhone);
  start(usbmuxd.address());
  ASSERT_TRUE(wait_devices(1));
  auto found = find(kPhone);
  ASSERT_TRUE(found.ok());
  EXPECT_TRUE(found->empty());
  EXPECT_EQ(usbmuxd.connects(), 10u);
  usbmuxd.map_port(kPhone, 7729, first.port());
  usbmuxd.map_port(kPhone, 7720, second.port());
  usbmuxd.map_port(kPhone, 7730, beyond.port());
  usbmuxd.map_port(kPhone, 7719, beyond.port());
  found = find(kPhone);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(*found, (std::vector<std::string>{"tcp:7720", "tcp:7729"}));
  // What it tried is closed again.
  auto peer = first.accept();
  EXPECT_TRUE(ends(peer));
  EXPECT_TRUE(eventually([&] { return usbmuxd.streams() == 0; }));
}

struct Answer {
  uint32_t number;
  Code code;
  const char* says;
};

TEST_F(UsbmuxSourceTest, ResultsSayWhatToDo) {
  FakeUsbmuxd usbmuxd(socket_path());
  usbmuxd.attach(kPhone);
  start(usbmuxd.address());
  ASSERT_TRUE(wait_devices(1));
  const Answer answers[] = {{1, Code::kUnsupported, "newer"},
                            {2, Code::kUnavailable, "unplugged"},
                            {3, Code::kNotFound, "COLLECT_LISTEN"},
                            {6, Code::kUnsupported, "version"},
                            {77, Code::kUnavailable, "77"}};
  for (const Answer& answer : answers) {
    usbmuxd.answer_connects_with(answer.number);
    const auto stream = open(kPhone, "tcp:7720");
    ASSERT_FALSE(stream.ok());
    EXPECT_EQ(stream.code(), answer.code) << answer.number;
    EXPECT_NE(stream.error().message.find(answer.says), std::string::npos)
        << stream.error().message;
    const auto found = find(kPhone);
    EXPECT_EQ(found.ok(), answer.number == 3) << "no app is no failure";
    if (!found.ok()) {
      EXPECT_EQ(found.code(), answer.code);
    }
  }
}

TEST_F(UsbmuxSourceTest, RefusesAnAnswerToAnotherRequest) {
  FakeUsbmuxd usbmuxd(socket_path());
  App app(io_);
  usbmuxd.attach(kPhone);
  usbmuxd.map_port(kPhone, 7720, app.port());
  start(usbmuxd.address());
  ASSERT_TRUE(wait_devices(1));
  usbmuxd.answer_connects_with_another_tag(true);
  EXPECT_EQ(open(kPhone, "tcp:7720").code(), Code::kDamaged);
  usbmuxd.answer_connects_with_another_tag(false);
  EXPECT_TRUE(open(kPhone, "tcp:7720").ok());
}

TEST_F(UsbmuxSourceTest, PlacesAndDevicesThatAreNone) {
  FakeUsbmuxd usbmuxd(socket_path());
  usbmuxd.attach(kPhone);
  start(usbmuxd.address());
  ASSERT_TRUE(wait_devices(1));
  for (const char* endpoint : {"", "7720", "tcp:", "tcp:0", "tcp:65536", "tcp:7720x", "udp:7720"}) {
    const auto stream = open(kPhone, endpoint);
    ASSERT_FALSE(stream.ok()) << endpoint;
    EXPECT_EQ(stream.code(), Code::kInvalidArgument) << endpoint;
  }
  EXPECT_EQ(open(kOther, "tcp:7720").code(), Code::kNotFound);
  EXPECT_EQ(open("", "tcp:7720").code(), Code::kNotFound);
  EXPECT_EQ(find(kOther).code(), Code::kNotFound);
  EXPECT_EQ(usbmuxd.connects(), 0u);
}

TEST_F(UsbmuxSourceTest, UnplugEndsStreamsAndReplugHasANewId) {
  FakeUsbmuxd usbmuxd(socket_path());
  App app(io_);
  uint32_t id = usbmuxd.attach(kPhone);
  usbmuxd.map_port(kPhone, 7721, app.port());
  start(usbmuxd.address());
  for (int times = 0; times < 3; ++times) {
    ASSERT_TRUE(wait_devices(1));
    auto stream = open(kPhone, "tcp:7721");
    ASSERT_TRUE(stream.ok());
    auto peer = app.accept();
    asio::write(peer, asio::buffer(std::string("half a fra")));
    EXPECT_EQ(read_exactly(*stream, 10), "half a fra");
    usbmuxd.detach(id);
    EXPECT_TRUE(ends(*stream));
    EXPECT_TRUE(ends(peer));
    ASSERT_TRUE(wait_devices(0));
    EXPECT_EQ(open(kPhone, "tcp:7721").code(), Code::kNotFound);
    const uint32_t next = usbmuxd.attach(kPhone);
    EXPECT_NE(next, id);
    id = next;
  }
}

TEST_F(UsbmuxSourceTest, DetachedDuringConnectIsAnUnplug) {
  FakeUsbmuxd usbmuxd(socket_path());
  const uint32_t id = usbmuxd.attach(kPhone);
  start(usbmuxd.address());
  ASSERT_TRUE(wait_devices(1));
  usbmuxd.leave_connects_unanswered(true);
  std::optional<Result<Socket>> opened;
  std::optional<Agents> found;
  source_->open(kPhone, "tcp:7720", [&](Result<Socket> r) { opened = std::move(r); });
  source_->find_agents(kPhone, [&](Agents r) { found = std::move(r); });
  ASSERT_TRUE(eventually([&] { return usbmuxd.unanswered() == 1 + kUsbmuxProbesAtOnce; }));
  usbmuxd.leave_connects_unanswered(false);
  usbmuxd.detach(id);
  ASSERT_TRUE(eventually([&] { return opened && found; }));
  EXPECT_EQ(opened->code(), Code::kUnavailable);
  EXPECT_NE(opened->error().message.find("unplugged"), std::string::npos);
  EXPECT_EQ(found->code(), Code::kUnavailable);
  EXPECT_TRUE(eventually([&] { return usbmuxd.unanswered() == 0; }));
}

TEST_F(UsbmuxSourceTest, SameSerialTwiceGoesOverUsbAndFallsBack) {
  FakeUsbmuxd usbmuxd(socket_path());
  App app(io_);
  const uint32_t network = usbmuxd.attach(kPhone, "Network");
  usbmuxd.map_port(kPhone, 7720, app.port());
  start(usbmuxd.address());
  ASSERT_TRUE(wait_devices(1));
  EXPECT_EQ(devices()[0].connection, "network");
  const uint32_t usb = usbmuxd.attach(kPhone, "USB");
  ASSERT_TRUE(eventually([&] { return devices()[0].connection == "usb"; }));
  EXPECT_EQ(devices().size(), 1u);
  auto over_usb = open(kPhone, "tcp:7720");
  ASSERT_TRUE(over_usb.ok());
  // Unplugged while a connect waits: the other way is taken.
  usbmuxd.leave_connects_unanswered(true);
  std::optional<Result<Socket>> opened;
  source_->open(kPhone, "tcp:7720", [&](Result<Socket> r) { opened = std::move(r); });
  ASSERT_TRUE(eventually([&] { return usbmuxd.unanswered() == 1; }));
  usbmuxd.leave_connects_unanswered(false);
  usbmuxd.detach(usb);
  ASSERT_TRUE(eventually([&] { return opened.has_value(); }));
  ASSERT_TRUE(opened->ok());
  EXPECT_TRUE(ends(*over_usb)) << "that one went over USB";
  ASSERT_TRUE(eventually([&] { return devices()[0].connection == "network"; }));
  usbmuxd.detach(network);
  EXPECT_TRUE(ends(**opened));
  EXPECT_TRUE(wait_devices(0));
}

TEST_F(UsbmuxSourceTest, AbsentAtFirstRestartedLater) {
  const std::string path = socket_path();
  start("UNIX:" + path);
  ASSERT_TRUE(eventually([&] { return !servers_.empty(); }));
  EXPECT_FALSE(servers_.back().connected);
  EXPECT_EQ(servers_.back().address, "unix:" + path);
  EXPECT_NE(servers_.back().status.find("USBMUXD_SOCKET_ADDRESS"), std::string::npos);
  EXPECT_EQ(open(kPhone, "tcp:7720").code(), Code::kNotFound);
  FakeUsbmuxd usbmuxd(path);
  usbmuxd.attach(kPhone);
  ASSERT_TRUE(wait_devices(1));
  EXPECT_EQ(servers_.size(), 2u) << "an absence that lasts is said once";
  App app(io_);
  usbmuxd.map_port(kPhone, 7720, app.port());
  auto before = open(kPhone, "tcp:7720");
  ASSERT_TRUE(before.ok());
  usbmuxd.stop();
  ASSERT_TRUE(wait_devices(0));
  ASSERT_TRUE(eventually([&] { return !connected(); }));
  EXPECT_TRUE(ends(*before));
  usbmuxd.start();
  ASSERT_TRUE(wait_devices(1));
  EXPECT_TRUE(connected());
  EXPECT_TRUE(open(kPhone, "tcp:7720").ok());
}

TEST_F(UsbmuxSourceTest, RestartDuringConnect) {
  FakeUsbmuxd usbmuxd(socket_path());
  usbmuxd.attach(kPhone);
  start(usbmuxd.address());
  ASSERT_TRUE(wait_devices(1));
  usbmuxd.leave_connects_unanswered(true);
  std::optional<Result<Socket>> opened;
  source_->open(kPhone, "tcp:7720", [&](Result<Socket> r) { opened = std::move(r); });
  ASSERT_TRUE(eventually([&] { return usbmuxd.unanswered() == 1; }));
  usbmuxd.stop();
  ASSERT_TRUE(eventually([&] { return opened.has_value(); }));
  EXPECT_EQ(opened->code(), Code::kUnavailable);
}

TEST_F(UsbmuxSourceTest, SilentUsbmuxdIsGivenUpAfterItsTime) {
  FakeUsbmuxd usbmuxd(socket_path());
  usbmuxd.attach(kPhone);
  start(usbmuxd.address());
  ASSERT_TRUE(wait_devices(1));
  usbmuxd.leave_connects_unanswered(true);
  const auto stream = open(kPhone, "tcp:7720");
  ASSERT_FALSE(stream.ok());
  EXPECT_EQ(stream.code(), Code::kUnavailable);
  EXPECT_NE(stream.error().message.find("5 s"), std::string::npos) << stream.error().message;
}

// After anything that is no message, the connection is made again, and works.
TEST_F(UsbmuxSourceTest, GarbageCostsAReconnect) {
  FakeUsbmuxd usbmuxd(socket_path());
  usbmuxd.attach(kPhone);
  start(usbmuxd.address());
  std::string oversized = FakeUsbmuxd::message(0, "<key>x</key>");
  oversized[2] = 0x7F;
  std::string other_version = FakeUsbmuxd::message(0, "<key>x</key>");
  other_version[4] = 0;
  const std::string bad[] = {"HTTP/1.1 400 Bad Request\r\n\r\n",
                             std::string(16, '\0'),
                             oversized,
                             other_version,
                             FakeUsbmuxd::message(0, "<key>no end"),
                             FakeUsbmuxd::message(0,
                                                  "<key>MessageType</key><string>Attached"
                                                  "</string>")};
  for (const std::string& bytes : bad) {
    ASSERT_TRUE(eventually([&] { return connected() && usbmuxd.listeners() == 1; }));
    ASSERT_TRUE(wait_devices(1));
    const uint64_t before = usbmuxd.accepted();
    usbmuxd.send_to_listeners(bytes);
    ASSERT_TRUE(eventually([&] { return !connected(); }));
    EXPECT_FALSE(servers_.back().status.empty());
    ASSERT_TRUE(eventually([&] { return usbmuxd.accepted() > before; }));
  }
  ASSERT_TRUE(wait_devices(1));
}

// No one knows where the next one would begin.
TEST_F(UsbmuxSourceTest, MessageThatDoesNotComeWholeEndsTheConnection) {
  FakeUsbmuxd usbmuxd(socket_path());
  start(usbmuxd.address());
  ASSERT_TRUE(eventually([&] { return connected() && usbmuxd.listeners() == 1; }));
  const std::string whole =
      FakeUsbmuxd::message(0, FakeUsbmuxd::attached_dictionary(40, kPhone, "USB"));
  usbmuxd.send_to_listeners(whole);
  ASSERT_TRUE(wait_devices(1));
  usbmuxd.send_to_listeners(whole.substr(0, whole.size() - 1));
  ASSERT_TRUE(eventually([&] { return !connected(); }));
  EXPECT_NE(servers_.back().status.find("no whole message within 10 s"), std::string::npos)
      << servers_.back().status;
  EXPECT_TRUE(eventually([&] { return connected(); }));
}

TEST_F(UsbmuxSourceTest, SkipsUnknownMessages) {
  FakeUsbmuxd usbmuxd(socket_path());
  start(usbmuxd.address());
  ASSERT_TRUE(eventually([&] { return connected() && usbmuxd.listeners() == 1; }));
  usbmuxd.send_to_listeners(
      FakeUsbmuxd::message(0, "<key>MessageType</key><string>Sung</string>") +
      FakeUsbmuxd::message(0,
                           "<key>MessageType</key><string>Paired</string><key>DeviceID</key>"
                           "<integer>1</integer>") +
      FakeUsbmuxd::message(0, FakeUsbmuxd::attached_dictionary(40, "", "USB")));
  ASSERT_TRUE(wait_devices(1));
  EXPECT_FALSE(devices()[0].is_usable);
  EXPECT_EQ(usbmuxd.accepted(), 1u);
}

TEST_F(UsbmuxSourceTest, OneThatHangsUpIsAskedEverMoreRarely) {
  using std::chrono::steady_clock;
  ClosingListener listener(io_);
  const auto begun = steady_clock::now();
  start("127.0.0.1:" + std::to_string(listener.port()));
  ASSERT_TRUE(eventually([&] { return listener.accepted() == 5; }));
  EXPECT_GE(steady_clock::now() - begun, (1 + 2 + 4 + 5) * kUsbmuxFirstRetry);
  EXPECT_EQ(servers_.size(), 1u) << "said once";
}

TEST_F(UsbmuxSourceTest, RefusalToTellOfDevicesIsSaid) {
  FakeUsbmuxd usbmuxd(socket_path());
  usbmuxd.attach(kPhone);
  usbmuxd.answer_listens_with(6);
  start(usbmuxd.address());
  ASSERT_TRUE(eventually([&] { return !servers_.empty(); }));
  EXPECT_FALSE(connected());
  EXPECT_NE(servers_.back().status.find("result 6; install a newer one"), std::string::npos)
      << servers_.back().status;
  EXPECT_TRUE(devices().empty());
  usbmuxd.answer_listens_with(0);
  ASSERT_TRUE(wait_devices(1));
  EXPECT_TRUE(connected());
}

TEST_F(UsbmuxSourceTest, DevicesBeyondTheLimitAreSaidAndNotShown) {
  FakeUsbmuxd usbmuxd(socket_path());
  for (size_t i = 0; i < kMaxUsbmuxDevices; ++i) usbmuxd.attach("phone " + std::to_string(i));
  start(usbmuxd.address());
  ASSERT_TRUE(wait_devices(kMaxUsbmuxDevices));
  EXPECT_EQ(servers_.back().status, "");
  usbmuxd.attach(kPhone);
  ASSERT_TRUE(eventually([&] { return servers_.back().status != ""; }));
  EXPECT_NE(servers_.back().status.find("more than 256 devices"), std::string::npos);
  EXPECT_TRUE(connected());
  EXPECT_EQ(devices().size(), kMaxUsbmuxDevices);
}

TEST_F(UsbmuxSourceTest, LimitsConnectsWithoutAnAnswer) {
  const App silent(io_);  // accepts nothing
  const auto address = parse_usbmux_address("127.0.0.1:" + std::to_string(silent.port()));
  const auto opens = std::make_shared<UsbmuxOpens>(io_, *address);
  std::vector<Code> answers;
  const auto open_one = [&] {
    opens->open(kPhone, {1}, 7720,
                [&](const Result<Socket>& opened) { answers.push_back(opened.code()); });
  };
  for (size_t i = 0; i < kMaxUsbmuxOpens; ++i) open_one();
  io_.poll();
  EXPECT_TRUE(answers.empty());
  open_one();
  EXPECT_TRUE(eventually([&] { return !answers.empty(); }));
  EXPECT_EQ(answers, std::vector<Code>{Code::kExhausted});
  opens->detached(1);
  EXPECT_EQ(answers.size(), kMaxUsbmuxOpens + 1) << "there is room again";
  EXPECT_EQ(answers.back(), Code::kUnavailable);
  opens->stop();
}

// One app that does not read holds up no one but itself.
TEST_F(UsbmuxSourceTest, StalledReaderDoesNotDelayOthers) {
  FakeUsbmuxd usbmuxd(socket_path());
  App stalled(io_), lively(io_);
  usbmuxd.attach(kPhone);
  usbmuxd.attach(kOther);
  usbmuxd.map_port(kPhone, 7720, stalled.port());
  usbmuxd.map_port(kOther, 7720, lively.port());
  start(usbmuxd.address());
  ASSERT_TRUE(wait_devices(2));
  auto full = open(kPhone, "tcp:7720");
  ASSERT_TRUE(full.ok());
  auto sleeper = stalled.accept();
  full->non_blocking(true);
  const std::string block(64 * 1024, 'x');
  size_t written = 0;
  std::error_code error;
  for (int idle = 0; idle < 50 && written < (256u << 20);) {
    const size_t put = full->write_some(asio::buffer(block), error);
    written += put;
    idle = put == 0 ? idle + 1 : 0;
    if (put == 0) io_.run_one_for(std::chrono::milliseconds(2));
    io_.restart();
  }
  EXPECT_EQ(error, asio::error::would_block);
  auto other = open(kOther, "tcp:7720");
  ASSERT_TRUE(other.ok());
  auto peer = lively.accept();
  asio::write(*other, asio::buffer(std::string("ping")));
  EXPECT_EQ(read_exactly(peer, 4), "ping");
  const uint32_t more = usbmuxd.attach("third");
  EXPECT_TRUE(wait_devices(3));
  usbmuxd.detach(more);
  EXPECT_TRUE(wait_devices(2));
}

TEST_F(UsbmuxSourceTest, DoesNotAnswerAfterStop) {
  FakeUsbmuxd usbmuxd(socket_path());
  usbmuxd.attach(kPhone);
  start(usbmuxd.address());
  ASSERT_TRUE(wait_devices(1));
  usbmuxd.leave_connects_unanswered(true);
  int answers = 0;
  source_->open(kPhone, "tcp:7720", [&](const Result<Socket>&) { ++answers; });
  source_->open(kOther, "tcp:7720", [&](const Result<Socket>&) { ++answers; });
  source_->find_agents(kPhone, [&](const Agents&) { ++answers; });
  const size_t before = servers_.size() + lists_.size();
  source_->stop();
  source_.reset();
  usbmuxd.attach(kOther);
  ASSERT_TRUE(eventually([&] { return usbmuxd.listeners() == 0 && usbmuxd.unanswered() == 0; }));
  while (io_.poll() != 0) {
  }
  EXPECT_EQ(answers, 0);
  EXPECT_EQ(servers_.size() + lists_.size(), before);
}

// A callback may stop the source at once.
TEST_F(UsbmuxSourceTest, StopWithinACallback) {
  FakeUsbmuxd usbmuxd(socket_path());
  const uint32_t id = usbmuxd.attach(kPhone);
  start(usbmuxd.address());
  ASSERT_TRUE(wait_devices(1));
  usbmuxd.leave_connects_unanswered(true);
  int answers = 0;
  for (int i = 0; i < 3; ++i) {
    source_->open(kPhone, "tcp:7720", [&](const Result<Socket>&) {
      ++answers;
      source_->stop();
      source_.reset();
    });
  }
  ASSERT_TRUE(eventually([&] { return usbmuxd.unanswered() == 3; }));
  usbmuxd.detach(id);
  ASSERT_TRUE(eventually([&] { return usbmuxd.listeners() == 0 && usbmuxd.unanswered() == 0; }));
  EXPECT_EQ(answers, 1);
}

}  // namespace
}  // namespace collect::attach
