// The table with a source and an observer that the test plays.
#include "daemon/attach/device_table.h"

#include <gmock/gmock.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <asio/post.hpp>
#include <set>
#include <sstream>

#include "daemon/attach/list_pace.h"

namespace collect::attach {
namespace {

using std::chrono::seconds;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr seconds kSoon{20};

class PlayedSource final : public DeviceSource {
 public:
  explicit PlayedSource(asio::io_context& io) : io_(io) {}

  const char* via() const override { return "adb"; }
  void start(OnServer on_server, OnDevices on_devices) override {
    on_server_ = std::move(on_server);
    on_devices_ = std::move(on_devices);
  }
  void stop() override { stopped_ = true; }
  void find_agents(const std::string& serial, OnAgents done) override {
    ++searches;
    ++searches_of[serial];
    asio::post(io_, [this, serial, done] {
      if (stopped_) return;
      if (fault) {
        done(*fault);
      } else {
        done(std::vector<std::string>(listening.begin(), listening.end()));
      }
    });
  }
  void open(const std::string&, const std::string& endpoint, OnOpen done) override {
    asio::post(io_, [endpoint, done] { done(Error{Code::kNotFound, "no one at " + endpoint}); });
  }
  void say(const std::vector<SourceDevice>& list) { on_devices_(list); }
  void say(const ServerState& state) { on_server_(state); }

  std::set<std::string> listening;
  std::optional<Error> fault;
  int searches = 0;
  std::map<std::string, int> searches_of;

 private:
  asio::io_context& io_;
  OnServer on_server_;
  OnDevices on_devices_;
  bool stopped_ = false;
};

SourceDevice phone(const std::string& serial, const std::string& connection = "usb") {
  SourceDevice device;
  device.serial = serial;
  device.connection = connection;
  device.model = "Sim";
  device.reported_state = "device";
  device.is_usable = true;
  return device;
}

class DeviceTableTest : public testing::Test, public DeviceObserver {
 protected:
  DeviceTableTest() {
    auto source = std::make_unique<PlayedSource>(io_);
    source_ = source.get();
    std::vector<std::unique_ptr<DeviceSource>> sources;
    sources.push_back(std::move(source));
    table_ = std::make_unique<DeviceTable>(io_, std::move(sources), keep_absent_, *this);
    table_->start();
  }
  void device_changed(const DeviceView& device, bool is_new) override {
    shown_[device.device.serial] = device;
    added_ += is_new ? 1 : 0;
  }
  void device_removed(const DeviceView& device) override { shown_.erase(device.device.serial); }
  void endpoint_found(const std::string& address) override { dialled_.insert(address); }
  void endpoint_gone(const std::string& address) override { dialled_.erase(address); }

  template <class Condition>
  bool wait(Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + kSoon;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      io_.restart();
      io_.run_one_for(milliseconds(20));
    }
    return true;
  }
  bool shows(const std::string& serial, DeviceState state) {
    return wait([&] { return shown_.contains(serial) && shown_[serial].state == state; });
  }
  // A phone with one agent that is attached.
  void serve() {
    source_->listening = {"collect_agent_7"};
    source_->say({phone("A")});
    ASSERT_TRUE(wait([&] { return dialled_.contains(kPlace); }));
    table_->agent_is(kPlace, "agents/1", true, false);
    ASSERT_TRUE(shows("A", DeviceState::kServing));
  }

  static constexpr char kPlace[] = "adb:A:collect_agent_7";
  milliseconds keep_absent_{600};
  asio::io_context io_{1};
  PlayedSource* source_ = nullptr;
  std::unique_ptr<DeviceTable> table_;
  std::map<std::string, DeviceView> shown_;
  std::set<std::string> dialled_;
  int added_ = 0;
};

TEST_F(DeviceTableTest, AgentIsFoundDialledAndNamed) {
  serve();
  EXPECT_EQ(shown_["A"].device.reason, "");
  ASSERT_EQ(shown_["A"].endpoints.size(), 1u);
  EXPECT_EQ(shown_["A"].endpoints[0], (EndpointView{"collect_agent_7", "agents/1", ""}));
  EXPECT_EQ(table_->devices().size(), 1u);
  EXPECT_EQ(table_->devices()[0], shown_["A"]);
}

// Of the configuration: dialled whenever the device is there, even if a search finds nothing.
TEST_F(DeviceTableTest, WantedPlaceNeedsNoSearch) {
  table_->stop();
  auto source = std::make_unique<PlayedSource>(io_);
  source_ = source.get();
  std::vector<std::unique_ptr<DeviceSource>> sources;
  sources.push_back(std::move(source));
  table_ = std::make_unique<DeviceTable>(
      io_, std::move(sources), keep_absent_, *this,
      std::vector<std::string>{"adb:A:own", "adb:B:other", "usbmux:A:tcp:7720"});
  table_->start();
  source_->say({phone("A")});
  ASSERT_TRUE(wait([&] { return dialled_.contains("adb:A:own"); }));
  EXPECT_EQ(dialled_.size(), 1u);
  // No one listens there yet: it continues being dialled.
  std::optional<Code> opened;
  table_->open("adb:A:own", [&](const Result<Socket>& socket) { opened = socket.code(); });
  ASSERT_TRUE(wait([&] { return opened.has_value(); }));
  EXPECT_EQ(*opened, Code::kNotFound);
  EXPECT_TRUE(dialled_.contains("adb:A:own"));
  const int searches = source_->searches;
  ASSERT_TRUE(wait([&] { return source_->searches > searches + 1; }));
  EXPECT_TRUE(dialled_.contains("adb:A:own"));
  // What was detached stays so as long as the device is there.
  table_->release("adb:A:own");
  dialled_.clear();  // as its owner does
  const int later = source_->searches;
  ASSERT_TRUE(wait([&] { return source_->searches > later + 1; }));
  EXPECT_FALSE(dialled_.contains("adb:A:own"));
  source_->say(std::vector<SourceDevice>{});
  source_->say({phone("A")});
  EXPECT_TRUE(wait([&] { return dialled_.contains("adb:A:own"); }));
}

TEST_F(DeviceTableTest, WhyADeviceCantBeUsed) {
  SourceDevice blocked = phone("A");
  blocked.is_usable = false;
  blocked.reported_state = "unauthorized";
  blocked.reason = "no trust";
  blocked.advice = "confirm";
  source_->say({blocked});
  ASSERT_TRUE(shows("A", DeviceState::kBlocked));
  EXPECT_EQ(shown_["A"].device.reason, "no trust");
  EXPECT_EQ(source_->searches, 0) << "no one asks a device that can't answer";
  source_->say({phone("A")});
  ASSERT_TRUE(shows("A", DeviceState::kNoAgent));
  EXPECT_THAT(shown_["A"].device.advice, HasSubstr("COLLECT_LISTEN=abstract:"));
  EXPECT_EQ(source_->searches, 1);
  EXPECT_EQ(added_, 1);
}

// What the log says meanwhile.
class DeviceLogTest : public DeviceTableTest {
 protected:
  DeviceLogTest() {
    spdlog::set_default_logger(std::make_shared<spdlog::logger>(
        "test", std::make_shared<spdlog::sinks::ostream_sink_st>(lines_)));
  }
  ~DeviceLogTest() override { spdlog::set_default_logger(before_); }
  size_t times(const std::string& text) const {
    size_t count = 0;
    const std::string all = lines_.str();
    for (size_t at = all.find(text); at != std::string::npos; at = all.find(text, at + 1)) ++count;
    return count;
  }

  const std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
  std::ostringstream lines_;
};

// Each plug begins with a phone that is offline, or has no shell yet.
TEST_F(DeviceLogTest, ReportsUnusableDevicesOnceTheyStaySo) {
  SourceDevice offline = phone("A");
  offline.is_usable = false;
  offline.reason = "it does not answer";
  for (int plugs = 0; plugs < 3; ++plugs) {
    source_->say({offline});
    source_->fault = Error{Code::kUnavailable, "A: no shell"};
    source_->say({phone("A")});
    ASSERT_TRUE(shows("A", DeviceState::kBlocked));
    source_->fault.reset();
    ASSERT_TRUE(shows("A", DeviceState::kNoAgent));
  }
  EXPECT_EQ(times("can't be used"), 0u) << lines_.str();
  source_->say({offline});
  ASSERT_TRUE(wait([&] { return times("can't be used: it does not answer") != 0; }));
  source_->say({offline});
  const auto said = std::chrono::steady_clock::now();
  ASSERT_TRUE(wait([&] { return std::chrono::steady_clock::now() - said > 2 * kBlockedLogPause; }));
  EXPECT_EQ(times("can't be used"), 1u) << lines_.str();
}

TEST_F(DeviceTableTest, RefusalIsTheReasonAndSaysWhatToDo) {
  source_->listening = {"collect_agent_7"};
  source_->say({phone("A")});
  ASSERT_TRUE(wait([&] { return dialled_.contains(kPlace); }));
  table_->report(kPlace, {EndpointReport::Trouble::kVersion, "speaks version 9"});
  ASSERT_TRUE(shows("A", DeviceState::kBlocked));
  EXPECT_EQ(shown_["A"].device.reason, "collect_agent_7: speaks version 9");
  EXPECT_THAT(shown_["A"].device.advice, HasSubstr("same release"));
  table_->report(kPlace, {EndpointReport::Trouble::kToken, "wrong token"});
  EXPECT_THAT(shown_["A"].device.advice, HasSubstr("token"));
}

TEST_F(DeviceTableTest, ShowsUnpluggedAgentsWhileTheyMayResume) {
  serve();
  source_->say(std::vector<SourceDevice>{});
  ASSERT_TRUE(shows("A", DeviceState::kAbsent));
  EXPECT_TRUE(dialled_.empty());
  table_->agent_is(kPlace, "agents/1", false, false);
  source_->say({phone("A")});
  ASSERT_TRUE(wait([&] { return dialled_.contains(kPlace); })) << "dialled again after a replug";
  table_->agent_is(kPlace, "agents/1", true, false);
  ASSERT_TRUE(shows("A", DeviceState::kServing));
  EXPECT_EQ(added_, 1);
  source_->say(std::vector<SourceDevice>{});
  ASSERT_TRUE(wait([&] { return shown_.empty(); })) << "given up after keep_absent";
  EXPECT_TRUE(table_->devices().empty());
}

TEST_F(DeviceTableTest, UnpluggedWithoutAgentsIsGoneAtOnce) {
  source_->say({phone("A")});
  ASSERT_TRUE(shows("A", DeviceState::kNoAgent));
  source_->say(std::vector<SourceDevice>{});
  EXPECT_TRUE(shown_.empty());
}

TEST_F(DeviceTableTest, AbsentUntilTheAgentIsGivenUp) {
  serve();
  source_->say(std::vector<SourceDevice>{});
  ASSERT_TRUE(shows("A", DeviceState::kAbsent));
  table_->agent_is(kPlace, "agents/1", false, true);
  EXPECT_TRUE(shown_.empty());
}

// A source may name candidates: one that is not there is forgotten, and looked for again.
TEST_F(DeviceTableTest, ForgetsAnEndpointWithoutAListener) {
  source_->listening = {"collect_agent_7"};
  source_->say({phone("A")});
  ASSERT_TRUE(wait([&] { return dialled_.contains(kPlace); }));
  bool answered = false;
  table_->open(kPlace, [&answered](const Result<Socket>& opened) {
    EXPECT_EQ(opened.code(), Code::kNotFound);
    answered = true;
  });
  ASSERT_TRUE(wait([&] { return answered; }));
  EXPECT_TRUE(dialled_.empty());
  EXPECT_EQ(shown_["A"].state, DeviceState::kNoAgent);
  EXPECT_TRUE(shown_["A"].endpoints.empty());
  EXPECT_TRUE(wait([&] { return dialled_.contains(kPlace); })) << "found by the next search";
}

TEST_F(DeviceTableTest, StreamThatIsUpKnowsBetterThanTheSearch) {
  serve();
  source_->listening.clear();
  table_->agent_is(kPlace, "agents/1", false, false);  // the next search is soon
  table_->agent_is(kPlace, "agents/1", true, false);
  const int searches = source_->searches;
  ASSERT_TRUE(wait([&] { return source_->searches > searches; }));
  ASSERT_TRUE(wait([&] { return shown_["A"].state == DeviceState::kServing; }));
  EXPECT_THAT(dialled_, Contains(kPlace));
}

TEST_F(DeviceTableTest, DoesNotRedialDetachedAgents) {
  serve();
  table_->release(kPlace);
  table_->agent_is(kPlace, "agents/1", true, false);  // it is still ending its recording
  table_->agent_is(kPlace, "agents/1", false, true);
  EXPECT_THAT(shown_["A"].endpoints,
              ElementsAre(EndpointView{"collect_agent_7", "", "detached by command"}));
  dialled_.clear();
  // A search begins when the answer of the one before has been handled.
  const int searches = source_->searches;
  ASSERT_TRUE(wait([&] { return source_->searches >= searches + 2; }));
  EXPECT_TRUE(dialled_.empty());
  source_->listening.clear();
  ASSERT_TRUE(wait([&] { return shown_["A"].endpoints.empty(); }));
}

// The address that is shown is taken back: detaching is no dead end.
TEST_F(DeviceTableTest, AttachesDetachedAgentsAgain) {
  serve();
  table_->release(kPlace);
  table_->agent_is(kPlace, "agents/1", false, true);
  dialled_.clear();
  EXPECT_TRUE(table_->attach(kPlace).ok());
  EXPECT_THAT(dialled_, ElementsAre(kPlace));
  EXPECT_EQ(*table_->status_of(kPlace), "dialling");
  table_->agent_is(kPlace, "agents/2", true, false);
  EXPECT_EQ(shown_["A"].endpoints[0], (EndpointView{"collect_agent_7", "agents/2", ""}));
  EXPECT_EQ(*table_->status_of(kPlace), "");
  dialled_.clear();
  EXPECT_TRUE(table_->attach(kPlace).ok()) << "it is attached";
  EXPECT_TRUE(dialled_.empty());
}

TEST_F(DeviceTableTest, PlaceThatWasNotFoundCanBeAttached) {
  serve();
  EXPECT_TRUE(table_->attach("adb:A:a name: of its own").ok());
  EXPECT_THAT(dialled_, Contains("adb:A:a name: of its own"));
  EXPECT_EQ(table_->attach("adb:B:collect_agent_7").code(), Code::kNotFound);
  EXPECT_EQ(table_->attach("usbmux:A:tcp:7720").code(), Code::kNotFound);
  EXPECT_EQ(table_->attach("adb:A:").code(), Code::kInvalidArgument);
  for (size_t i = 0; i <= kMaxEndpoints; ++i) {
    (void)table_->attach("adb:A:" + std::to_string(i));
  }
  EXPECT_EQ(table_->attach("adb:A:more").code(), Code::kLimit);
  source_->say(std::vector<SourceDevice>{});
  const Status unplugged = table_->attach(kPlace);
  EXPECT_EQ(unplugged.code(), Code::kNotFound);
  EXPECT_THAT(unplugged.error().message, HasSubstr("unplugged"));
}

TEST_F(DeviceTableTest, ReportsOfADetachedAgentChangeNothing) {
  serve();
  table_->release(kPlace);
  table_->report(kPlace, {EndpointReport::Trouble::kToken, "wrong token"});
  table_->agent_is(kPlace, "agents/1", false, true);
  ASSERT_TRUE(shows("A", DeviceState::kNoAgent));
  EXPECT_EQ(shown_["A"].endpoints[0].status, "detached by command");
}

// One that is restarted in the same endpoint is another agent, and the end of the first comes late.
TEST_F(DeviceTableTest, EndOfAnEarlierAgentKeepsTheNext) {
  serve();
  table_->agent_is(kPlace, "agents/2", true, false);
  table_->agent_is(kPlace, "agents/1", false, true);
  EXPECT_EQ(shown_["A"].state, DeviceState::kServing);
  EXPECT_EQ(shown_["A"].endpoints[0], (EndpointView{"collect_agent_7", "agents/2", ""}));
}

TEST_F(DeviceTableTest, RefusesToOpenUnknownPlaces) {
  const auto open = [this](const std::string& address) {
    std::optional<Code> answer;
    table_->open(address, [&](const Result<Socket>& opened) { answer = opened.code(); });
    EXPECT_FALSE(answer) << "answered within the call";
    EXPECT_TRUE(wait([&] { return answer.has_value(); }));
    return answer;
  };
  serve();
  EXPECT_EQ(open("adb:A:collect_agent_8"), Code::kUnavailable);
  EXPECT_EQ(open("adb:B:collect_agent_7"), Code::kUnavailable);
  EXPECT_EQ(open("usbmux:A:collect_agent_7"), Code::kUnavailable);
  source_->say(std::vector<SourceDevice>{});
  ASSERT_TRUE(shows("A", DeviceState::kAbsent));
  EXPECT_EQ(open(kPlace), Code::kUnavailable);
}

TEST_F(DeviceTableTest, FailedStreamKeepsAnAgentThatIsUp) {
  serve();
  bool answered = false;
  table_->open(kPlace, [&answered](const Result<Socket>&) { answered = true; });
  ASSERT_TRUE(wait([&] { return answered; }));
  EXPECT_EQ(shown_["A"].state, DeviceState::kServing);
  EXPECT_THAT(dialled_, Contains(kPlace));
}

TEST_F(DeviceTableTest, WithdrawsAnUnusableDeviceAndSearchesItAgain) {
  serve();
  SourceDevice blocked = phone("A");
  blocked.is_usable = false;
  blocked.reason = "locked";
  source_->say({blocked});
  ASSERT_TRUE(shows("A", DeviceState::kBlocked));
  EXPECT_TRUE(dialled_.empty());
  EXPECT_EQ(shown_["A"].endpoints[0].status, "locked");
  const int searches = source_->searches;
  source_->say({phone("A")});
  ASSERT_TRUE(wait([&] { return dialled_.contains(kPlace); }));
  EXPECT_EQ(source_->searches, searches + 1);
}

TEST_F(DeviceTableTest, FailedSearchDoesNotHideAnAgentThatServes) {
  serve();
  source_->fault = Error{Code::kUnavailable, "A: no shell"};
  const int searches = source_->searches;
  ASSERT_TRUE(wait([&] { return source_->searches > searches; }));
  io_.restart();
  io_.poll();
  EXPECT_EQ(shown_["A"].state, DeviceState::kServing);
  table_->agent_is(kPlace, "agents/1", false, false);
  EXPECT_EQ(shown_["A"].device.reason, "A: no shell");
}

// Each search opens a shell on the phone: they have a pace, which no one who asks can hurry beyond
// a bound.
TEST_F(DeviceTableTest, LimitsThePaceOfAllSearches) {
  using std::chrono::steady_clock;
  auto begun = steady_clock::now();
  serve();
  EXPECT_EQ(source_->searches, 1);
  // That it is up is said again, which is no reason to search.
  table_->agent_is(kPlace, "agents/1", true, false);
  ASSERT_TRUE(wait([&] { return source_->searches == 3; })) << "of a phone that serves, too";
  EXPECT_GE(steady_clock::now() - begun, 2 * kFreshSearchPause);
  begun = steady_clock::now();
  ASSERT_TRUE(wait([&] {
    table_->search();
    return source_->searches == 7;
  }));
  EXPECT_GE(steady_clock::now() - begun, 3 * kLeastSearchPause);
}

TEST_F(DeviceTableTest, SearchesAtOnceWhenAsked) {
  const auto begun = std::chrono::steady_clock::now();
  source_->say({phone("A")});
  ASSERT_TRUE(wait([&] { return std::chrono::steady_clock::now() - begun > kFreshTime; }));
  const int searches = source_->searches;
  ASSERT_TRUE(wait([&] { return source_->searches == searches + 2; }));
  EXPECT_GE(std::chrono::steady_clock::now() - begun, kFreshTime + kSearchPause)
      << "rarely by then";
  source_->listening = {"collect_agent_7"};
  table_->search();
  const auto asked = std::chrono::steady_clock::now();
  ASSERT_TRUE(wait([&] { return dialled_.contains(kPlace); }));
  EXPECT_LT(std::chrono::steady_clock::now() - asked, kSearchPause);
}

TEST_F(DeviceTableTest, SameSerialTwiceIsOneDeviceByCable) {
  source_->say({phone("A", "network"), phone("A", "usb")});
  ASSERT_TRUE(shows("A", DeviceState::kNoAgent));
  EXPECT_EQ(shown_["A"].device.connection, "usb");
  source_->say({phone("A", "network")});
  EXPECT_EQ(shown_["A"].device.connection, "network");
  SourceDevice by_cable = phone("A", "usb");
  by_cable.is_usable = false;
  source_->say({by_cable, phone("A", "network")});
  EXPECT_EQ(shown_["A"].device.connection, "network") << "one that can be used, rather";
  source_->say({phone("A", "usb"), phone("A", "network")});
  EXPECT_EQ(shown_["A"].device.connection, "usb");
  EXPECT_EQ(added_, 1);
}

TEST_F(DeviceTableTest, SearchThatFailsIsTheReason) {
  source_->fault = Error{Code::kUnavailable, "A: device offline"};
  source_->say({phone("A")});
  ASSERT_TRUE(shows("A", DeviceState::kBlocked));
  EXPECT_EQ(shown_["A"].device.reason, "A: device offline");
  source_->fault.reset();
  ASSERT_TRUE(shows("A", DeviceState::kNoAgent));
}

TEST_F(DeviceTableTest, ServersAreShown) {
  ASSERT_EQ(table_->servers().size(), 1u) << "a collector that was just started looks for phones";
  EXPECT_EQ(table_->servers()[0].via, "adb");
  EXPECT_FALSE(table_->servers()[0].connected);
  source_->say(ServerState{"adb", "127.0.0.1:1", false, "no server"});
  ASSERT_EQ(table_->servers().size(), 1u);
  EXPECT_EQ(table_->servers()[0].status, "no server");
}

TEST(ListPaceTest, BeyondTheFirstListsOneComesWithEachPause) {
  asio::io_context io;
  size_t passed = 0;
  size_t newest = 0;
  const auto pace = std::make_shared<ListPace>(io, [&](const std::vector<SourceDevice>& list) {
    ++passed;
    newest = list.size();
  });
  const auto begun = std::chrono::steady_clock::now();
  for (int64_t at = 0; at < kListsAtOnce; ++at) pace->take({}, begun);
  EXPECT_EQ(passed, 16u);
  for (size_t devices = 1; devices <= 4; ++devices) {
    pace->take(std::vector<SourceDevice>(devices), begun);
  }
  EXPECT_EQ(passed, 16u);
  io.run();
  EXPECT_EQ(passed, 17u);
  EXPECT_EQ(newest, 4u);
  // Not later than the pause's end, which has been used for that list.
  pace->take(std::vector<SourceDevice>(2), begun + kListPause);
  EXPECT_EQ(passed, 17u);
  io.restart();
  io.run();
  EXPECT_EQ(passed, 18u);
  EXPECT_EQ(newest, 2u) << "also where only one has waited";
}

// Seen: a search, and lines of the log, for each of them.
TEST_F(DeviceTableTest, HandlesFloodsOfPhonesAtASteadyPace) {
  constexpr int kFlood = 2'000;
  const auto begun = std::chrono::steady_clock::now();
  for (int at = 0; at < kFlood; ++at) {
    source_->say({phone("A")});
    source_->say(std::vector<SourceDevice>{});
  }
  source_->say({phone("A"), phone("B")});
  // The last word counts, however many came before it.
  ASSERT_TRUE(shows("B", DeviceState::kNoAgent));
  const int64_t paused = (std::chrono::steady_clock::now() - begun) / kListPause;
  EXPECT_LE(source_->searches, kListsAtOnce + 2 * (paused + 1));
}

}  // namespace
}  // namespace collect::attach
