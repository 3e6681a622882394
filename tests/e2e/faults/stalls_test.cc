// Programs that are held up, by the collector or by a signal: the session says when and for how
// long, and reports leave it out. Times are compared within the trace, and with this test's clock.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/e2e/collector_process.h"
#include "tests/e2e/recorded_session.h"
#include "tests/fakes/chaos_proxy.h"

namespace collect::e2e {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using Event = RecordedSession::StoredEvent;
using namespace std::chrono_literals;

constexpr seconds kLimit{120};
constexpr uint64_t kHeldNs = 1'000'000'000;

uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

struct Stall {
  std::string kind;
  uint64_t first_ns = 0;
  uint64_t last_ns = 0;
  uint64_t stalled_ns = 0;
  uint64_t count = 1;
};

// As the manifest has them; a joined one brings its own sum.
std::vector<Stall> stalls_of(const RecordedSession& session) {
  std::vector<Stall> stalls;
  for (const json& one : session.manifest().value("stalls", json::array())) {
    const uint64_t first_ns = one["first_ns"];
    const uint64_t last_ns = one["last_ns"];
    stalls.push_back({one["kind"], first_ns, last_ns, one.value("stalled_ns", last_ns - first_ns),
                      one.value("joined", uint64_t{1})});
  }
  return stalls;
}

std::vector<Event> events_of(const RecordedSession& session) {
  std::vector<Event> events;
  session.for_each_event(0, [&](const Event& event) { events.push_back(event); });
  return events;
}

class Stalls : public testing::TestWithParam<const char*> {
 protected:
  Stalls() : collector_(scratch_, {"--page-codecs", "off"}), proxy_(collector_.ingest_port()) {}

  Environment tracing() const {
    Environment environment = collector_.tracing("wait");
    environment["COLLECT_CONNECT"] = "127.0.0.1:" + std::to_string(proxy_.port());
    environment["COLLECT_DRAIN"] = GetParam();
    environment["COLLECT_BUFFER_MB"] = "1";
    return environment;
  }
  RecordedSession session_of(const ChildProcess& program) {
    std::vector<RecordedSession> sessions =
        sealed_sessions(collector_.root(), program.pid(), kLimit);
    EXPECT_EQ(sessions.size(), 1u);
    if (sessions.empty()) std::abort();
    return std::move(sessions[0]);
  }
  json report_of(const RecordedSession& session) const {
    const Ending ending = collector_.ctl({"report", "--json", session.directory()}, kLimit);
    EXPECT_TRUE(ending.exited_with(0)) << ending.errors;
    return json::parse(ending.output);
  }
  bool records_events() const {
    const Ending listed = collector_.ctl({"--json", "sessions"});
    return listed.exited_with(0) && listed.output.find("\"events\"") != std::string::npos;
  }

  Scratch scratch_;
  CollectorProcess collector_;
  fakes::ChaosProxy proxy_;
};

TEST_P(Stalls, WaitsAreInTheSessionButNotTheReport) {
  proxy_.limit_rate(20'000'000);
  ChildProcess program(scratch_.path(), {traced_program("steady"), "fill", "2000000"}, tracing());
  ASSERT_TRUE(eventually(kLimit, [&] { return records_events(); }));
  proxy_.hold(true);
  std::this_thread::sleep_for(std::chrono::nanoseconds(kHeldNs));
  proxy_.hold(false);
  ASSERT_TRUE(program.wait(kLimit).exited_with(0)) << program.errors();
  const RecordedSession session = session_of(program);
  const std::vector<Event> events = events_of(session);
  ASSERT_EQ(events.size(), 4'000'002u);  // and main
  const uint64_t first_ns = events.front().timestamp_ns;
  const uint64_t last_ns = events.back().timestamp_ns;

  uint64_t stalled_ns = 0;
  uint64_t count = 0;
  const std::vector<Stall> stalls = stalls_of(session);
  for (const Stall& stall : stalls) {
    EXPECT_EQ(stall.kind, "page_wait");
    EXPECT_GE(stall.first_ns, first_ns);
    if (stall.first_ns >= last_ns) continue;  // of the last event itself
    stalled_ns += stall.stalled_ns;
    count += stall.count;
  }
  EXPECT_GE(stalled_ns, kHeldNs * 9 / 10);
  const json totals = session.manifest()["totals"];
  EXPECT_GE(totals["stalled_ns"].get<uint64_t>(), stalled_ns);
  EXPECT_EQ(totals["page_wait_ns"], totals["stalled_ns"]);
  EXPECT_EQ(session.manifest()["threads"][0]["stall_count"], totals["stall_count"]);

  // Self times and stalls are all of the time between the first event and the last.
  const json report = report_of(session);
  uint64_t self_ns = 0;
  for (const json& function : report["functions"]) self_ns += function["self_ns"].get<uint64_t>();
  EXPECT_EQ(self_ns + stalled_ns, last_ns - first_ns);
  EXPECT_EQ(report["stalled_ns"], stalled_ns);
  EXPECT_EQ(report["stalls"], count);

  // The longest time without an event is the held collector's, and hardly any of it is left.
  size_t longest = 1;
  for (size_t i = 1; i < events.size(); ++i) {
    if (events[i].timestamp_ns - events[i - 1].timestamp_ns >
        events[longest].timestamp_ns - events[longest - 1].timestamp_ns) {
      longest = i;
    }
  }
  const uint64_t begin_ns = events[longest - 1].timestamp_ns;
  const uint64_t end_ns = events[longest].timestamp_ns;
  EXPECT_GE(end_ns - begin_ns, kHeldNs / 2);
  const auto covering = std::find_if(stalls.begin(), stalls.end(), [&](const Stall& stall) {
    return stall.first_ns < end_ns && stall.last_ns > begin_ns;
  });
  ASSERT_NE(covering, stalls.end());
  EXPECT_GE(covering->stalled_ns, (end_ns - begin_ns) * 9 / 10);

  const Ending text = collector_.ctl({"report", session.directory()}, kLimit);
  EXPECT_THAT(text.output, HasSubstr(", subtracted from the times\n"));
  const Ending inspected = collector_.ctl({"inspect", session.directory()}, kLimit);
  EXPECT_THAT(inspected.output, HasSubstr("waiting for the collector"));
  const Ending verified = collector_.ctl({"verify", session.directory()}, kLimit);
  EXPECT_TRUE(verified.exited_with(0)) << verified.output << verified.errors;
  const json shown = json::parse(collector_.ctl({"--json", "sessions"}).output)["sessions"][0];
  EXPECT_EQ(shown["page_wait_ns"], totals["page_wait_ns"]);
  EXPECT_EQ(shown["stalled_ns"], totals["stalled_ns"]);
  EXPECT_EQ(shown["stall_count"], totals["stall_count"]);
}

TEST_P(Stalls, StoppedProgramIsKnownToHaveBeenStopped) {
  ChildProcess program(scratch_.path(), {traced_program("steady"), "pace", "3000"}, tracing());
  ASSERT_TRUE(eventually(kLimit, [&] { return records_events(); }));
  std::this_thread::sleep_for(200ms);
  const uint64_t before_ns = now_ns();
  program.send_signal(SIGSTOP);
  std::this_thread::sleep_for(std::chrono::nanoseconds(kHeldNs));
  const uint64_t until_ns = now_ns();
  program.send_signal(SIGCONT);
  ASSERT_TRUE(program.wait(kLimit).exited_with(0)) << program.errors();
  const RecordedSession session = session_of(program);
  const std::vector<Event> events = events_of(session);
  std::vector<Stall> stops;
  for (const Stall& stall : stalls_of(session)) {
    if (stall.kind == "stopped") stops.push_back(stall);
  }
  ASSERT_EQ(stops.size(), 1u);
  const Stall& stop = stops[0];
  // It begins where the agent looked last, and a busy machine may see begin and end later than they
  // were.
  constexpr uint64_t kLookNs = 100'000'000;
  EXPECT_GE(stop.first_ns + kLookNs, before_ns);
  EXPECT_GE(stop.last_ns - stop.first_ns, kHeldNs / 2);
  const uint64_t stopped_until_ns = std::min(stop.last_ns, until_ns);
  const auto in_it = std::count_if(events.begin(), events.end(), [&](const Event& event) {
    return event.timestamp_ns > stop.first_ns + 1'000'000 && event.timestamp_ns < stopped_until_ns;
  });
  EXPECT_EQ(in_it, 0);
  const json report = report_of(session);
  EXPECT_EQ(report["stalls"], 1);
  EXPECT_EQ(report["stalled_ns"], stop.last_ns - stop.first_ns);
  const Ending dumped = collector_.ctl({"dump", session.directory()}, kLimit);
  EXPECT_THAT(dumped.output, HasSubstr("~ the process was stopped\n"));
}

INSTANTIATE_TEST_SUITE_P(DrainedBy, Stalls, testing::Values("thread", "process"));

}  // namespace
}  // namespace collect::e2e
