// Two devices whose clocks differ by an hour record at the same time; what happened in turns comes
// out in turns, and no event is further from the truth than is said.
#include <gtest/gtest.h>
#include <time.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "formats/atf/layout.h"
#include "tests/e2e/collector_process.h"
#include "tests/e2e/recorded_session.h"
#include "tests/fakes/fake_agent.h"

namespace collect::e2e {
namespace {

using nlohmann::json;

constexpr uint32_t kEvents = 200;

uint64_t now_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

struct Device {
  Device(const std::string& name, uint32_t pid_of_process, int64_t ahead)
      : ahead_ns(ahead),
        pid(static_cast<int>(pid_of_process)),
        agent(process(name, pid_of_process, ahead)) {}

  static fakes::FakeProcess process(const std::string& name, uint32_t pid, int64_t ahead_ns) {
    fakes::FakeProcess process;
    process.id_byte = static_cast<uint8_t>(pid);
    process.pid = pid;
    process.name = name;
    process.clock_ahead_ns = ahead_ns;
    return process;
  }

  // A call, then a return, and so on, of the one thread that it has.
  bool record(uint32_t seq, uint64_t boottime_ns) {
    atf::IndexEventV2 event{};
    event.timestamp_ns = boottime_ns + static_cast<uint64_t>(ahead_ns);
    event.function_id = 0x10;
    event.detail_seq = atf::kNoDetail;
    event.event_kind =
        static_cast<uint8_t>(seq % 2 == 0 ? atf::EventKind::kCall : atf::EventKind::kReturn);
    std::vector<uint8_t> bytes(sizeof event);
    std::memcpy(bytes.data(), &event, sizeof event);
    PageHeader page{};
    page.stream_id = 1;
    page.first_seq = seq;
    page.record_count = 1;
    page.first_ns = page.last_ns = event.timestamp_ns;
    return agent.data().send_page(page, bytes);
  }

  const int64_t ahead_ns;
  const int pid;
  fakes::FakeAgent agent;
};

// Whether the manifest of the pid's session has a comparison of clocks already.
bool is_compared(const std::string& root, int pid) {
  for (const std::string& directory : session_directories(root, pid)) {
    std::ifstream file(directory + "/manifest.json");
    const json manifest = json::parse(file, nullptr, false);
    if (manifest.is_object() && !manifest["clock_sync"].empty()) return true;
  }
  return false;
}

TEST(TimeLine, OrdersAlternatingEventsOfTwoDevices) {
  Scratch scratch;
  CollectorProcess collector(scratch);
  Device phone("phone", 101, 3'600'000'000'000);
  Device server("server", 102, 1'234'567);
  for (Device* device : {&phone, &server}) {
    ASSERT_TRUE(device->agent.connect(collector.ingest()));
    ASSERT_TRUE(device->agent.start_recording(1));
    ASSERT_TRUE(device->agent.open_stream(1, 1));
  }
  for (Device* device : {&phone, &server}) {
    const auto limit = std::chrono::steady_clock::now() + fakes::kPatience;
    while (!is_compared(collector.root(), device->pid)) {
      ASSERT_LT(std::chrono::steady_clock::now(), limit) << "no comparison of clocks was stored";
      pause_briefly();
    }
  }
  std::vector<uint64_t> truth;  // the moment of each event, on the clock of this machine
  for (uint32_t i = 0; i < kEvents; ++i) {
    truth.push_back(now_ns(CLOCK_BOOTTIME));
    ASSERT_TRUE((i % 2 == 0 ? phone : server).record(i / 2, truth.back()));
    pause_briefly();
  }
  const uint64_t to_unix = now_ns(CLOCK_REALTIME) - now_ns(CLOCK_BOOTTIME);
  Arguments dump = {"dump", "--merged", "--json"};
  for (Device* device : {&phone, &server}) {
    ASSERT_TRUE(device->agent.close_stream(1, kEvents / 2));
    ASSERT_TRUE(device->agent.end_recording());
    ASSERT_TRUE(device->agent.wait_recording_ended(1));
    device->agent.say_goodbye(false);
    const RecordedSession session = std::move(sealed_sessions(collector.root(), device->pid).at(0));
    dump.push_back(session.directory());
    for (const json& compared : session.manifest()["clock_sync"]) {
      const auto off = compared["offset_ns"].get<int64_t>() - device->ahead_ns;
      EXPECT_LE(std::abs(off), compared["uncertainty_ns"].get<int64_t>() + 1'000'000) << compared;
      EXPECT_LT(std::abs(compared["drift_ppb"].get<double>()), 1e9) << compared;
      EXPECT_GT(compared["at_unix_ns"], session.manifest()["process"]["start_unix_ns"]) << compared;
    }
  }

  const Ending dumped = collector.ctl(dump);
  ASSERT_TRUE(dumped.exited_with(0)) << dumped.errors;
  std::istringstream lines(dumped.output);
  size_t at = 0;
  for (std::string line; std::getline(lines, line); ++at) {
    ASSERT_LT(at, truth.size());
    const json event = json::parse(line);
    EXPECT_EQ(event["session"], dump[3 + at % 2]) << at;
    EXPECT_EQ(event["seq"], at / 2);
    const auto time = static_cast<int64_t>(event["time_ns"].get<uint64_t>());
    const auto off = time - static_cast<int64_t>(truth[at] + to_unix);
    // Its own word, and what the time of day was adjusted by since the comparison.
    EXPECT_LE(std::abs(off), event["uncertainty_ns"].get<int64_t>() + 1'000'000) << at;
  }
  EXPECT_EQ(at, truth.size());

  const Ending inspected = collector.ctl({"inspect", dump[3]});
  EXPECT_NE(inspected.output.find("with the collector's clock"), std::string::npos)
      << inspected.output;
}

}  // namespace
}  // namespace collect::e2e
