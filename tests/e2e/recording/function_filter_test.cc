// `collectctl filter` on programs that run: by -finstrument-functions, and by XRay, where functions
// that are left out are not even patched.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/e2e/collector_process.h"
#include "tests/e2e/recorded_session.h"

namespace collect::e2e {
namespace {

using nlohmann::json;

struct Way {
  const char* name;
  const char* program;
  const char* drain;
};

class FunctionFilterE2eTest : public ::testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(traced_program(GetParam().program))) {
      GTEST_SKIP() << "no clang here: nothing was built with -fxray-instrument";
    }
    ASSERT_EQ(mkfifo((scratch_ / "input").c_str(), 0600), 0);
  }
  ~FunctionFilterE2eTest() override {
    if (input_ >= 0) close(input_);
  }

  // It calls leaf, recursive and what calls those, until finish().
  void start(const Environment& more = {}) {
    Environment environment = collector_.tracing("wait");
    environment.insert(more.begin(), more.end());
    environment["COLLECT_DRAIN"] = GetParam().drain;
    job_ = std::make_unique<ChildProcess>(
        scratch_.path(), Arguments{traced_program(GetParam().program), "busy", scratch_ / "input"},
        environment);
    input_ = open((scratch_ / "input").c_str(), O_WRONLY | O_CLOEXEC);
    ASSERT_GE(input_, 0);
    ASSERT_TRUE(eventually(seconds(30), [&] { return events_shown() > 0; })) << job_->errors();
  }
  uint64_t events_shown() {
    const Ending shown = collector_.ctl({"sessions", "--json"});
    const json sessions = json::parse(shown.output, nullptr, false);
    if (!sessions.contains("sessions") || sessions["sessions"].empty()) return 0;
    return sessions["sessions"][0].value("events", uint64_t{0});
  }
  json filter(const Arguments& what) {
    Arguments command{"filter", "--json"};
    if (what != Arguments{"--clear"}) command.push_back("--set");
    command.insert(command.end(), what.begin(), what.end());
    const Ending ending = collector_.ctl(command);
    EXPECT_TRUE(ending.exited_with(0)) << ending.output << ending.errors;
    const json response = json::parse(ending.output, nullptr, false);
    return response.contains("outcomes") ? response["outcomes"][0] : json::object();
  }
  RecordedSession finish() {
    close(input_);
    input_ = -1;
    EXPECT_TRUE(job_->wait(seconds(60)).exited_with(0)) << job_->errors();
    EXPECT_EQ(job_->output(), expected_output_ + "done\n");
    std::vector<RecordedSession> sessions = sealed_sessions(collector_.root(), job_->pid());
    EXPECT_EQ(sessions.size(), 1u);
    return std::move(sessions.at(0));
  }
  // A time on the device's clock, which is this machine's, while one filter held.
  struct Window {
    uint64_t begin_ns;
    uint64_t end_ns;
  };
  // From when the agent says that it held, until every thread has called on for a while.
  Window window_from(const json& outcome) {
    EXPECT_EQ(write(input_, "+", 1), 1);
    expected_output_ += "on\n";
    EXPECT_TRUE(eventually(seconds(30), [&] { return job_->output() == expected_output_; }))
        << job_->output();
    timespec now{};
    clock_gettime(CLOCK_BOOTTIME, &now);
    return {
        outcome.value("effect_time_ns", uint64_t{0}),
        static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec)};
  }
  std::set<std::string> called_in(const RecordedSession& session, const Window& window) {
    std::map<uint64_t, std::string> names;
    for (const json& symbol : session.manifest()["symbols"]) {
      names[std::stoull(symbol["function_id"].get<std::string>(), nullptr, 16)] =
          symbol["name"].get<std::string>();
    }
    std::set<std::string> called;
    for (uint32_t thread = 0; thread < session.totals().threads; ++thread) {
      session.for_each_event(thread, [&](const RecordedSession::StoredEvent& event) {
        if (event.is_return || event.timestamp_ns <= window.begin_ns) return;
        if (event.timestamp_ns < window.end_ns) called.insert(names[event.function_id]);
      });
    }
    return called;
  }

  Scratch scratch_;
  CollectorProcess collector_{scratch_};
  std::unique_ptr<ChildProcess> job_;
  std::string expected_output_ = "at work\n";
  int input_ = -1;
};

TEST_P(FunctionFilterE2eTest, ChangesWhileTheProgramRuns) {
  using Names = std::set<std::string>;
  start();
  const json only = filter({"--only", "leaf*"});
  EXPECT_EQ(only.value("functions_matched", 0), 1) << only;
  const Window first = window_from(only);
  const json except = filter({"--except", "leaf"});
  const Window second = window_from(except);
  const json neither = filter({"--only", "leaf", "--only", "recursive", "--except", "leaf"});
  const Window third = window_from(neither);
  const json all = filter({"--clear"});
  const Window fourth = window_from(all);
  const RecordedSession session = finish();
  EXPECT_GT(called_in(session, {0, first.begin_ns}).size(), 1u);
  EXPECT_EQ(called_in(session, first), Names{"leaf"});
  EXPECT_EQ(called_in(session, second).count("leaf"), 0u);
  EXPECT_EQ(called_in(session, second).count("recursive"), 1u);
  EXPECT_EQ(called_in(session, third), Names{"recursive"});
  EXPECT_EQ(called_in(session, fourth).count("leaf"), 1u);
  EXPECT_EQ(called_in(session, fourth).count("recursive"), 1u);

  const json& held = session.manifest()["function_filters"];
  ASSERT_EQ(held.size(), 4u);
  EXPECT_EQ(held[0]["mode"], "only");
  EXPECT_EQ(held[0]["only"], json::array({"leaf*"}));
  EXPECT_EQ(held[0]["functions"], 1);
  EXPECT_EQ(held[1]["mode"], "all_but");
  EXPECT_EQ(held[2]["except"], json::array({"leaf"}));
  EXPECT_EQ(held[3]["mode"], "everything");
  const bool by_xray = std::string(GetParam().program).starts_with("xray");
  if (by_xray && GetParam().drain == std::string("thread")) {
    EXPECT_EQ(only.value("functions_patched", 0), 1);
    EXPECT_EQ(neither.value("functions_patched", 0), 1);
    EXPECT_GT(all.value("functions_patched", 0), except.value("functions_patched", 0));
  }
  const Ending verified = collector_.ctl({"verify", session.directory()});
  EXPECT_TRUE(verified.exited_with(0)) << verified.output << verified.errors;
}

// leaf and recursive are called millions of times a second, the others once.
TEST_P(FunctionFilterE2eTest, SwitchesOffHotFunctionsAndReportsThem) {
  constexpr uint64_t kMaxRate = 10'000;
  start({{"COLLECT_MAX_RATE", std::to_string(kMaxRate)}});
  const auto switched_off = [&] {
    std::map<uint64_t, json> found;
    for (const std::string& directory : session_directories(collector_.root(), job_->pid())) {
      const json manifest =
          json::parse(read_text_file(directory + "/manifest.json"), nullptr, false);
      if (!manifest.contains("function_filters")) continue;
      for (const json& filter : manifest["function_filters"]) {
        EXPECT_EQ(filter["mode"], "everything");
        for (const json& off : filter["switched_off"]) {
          found[std::stoull(off["function_id"].get<std::string>(), nullptr, 16)] = off;
        }
      }
    }
    return found;
  };
  ASSERT_TRUE(eventually(seconds(60), [&] { return switched_off().size() >= 2; }));
  (void)window_from(json::object());
  const RecordedSession session = finish();
  EXPECT_EQ(session.manifest()["process"]["max_rate"], kMaxRate);
  EXPECT_EQ(session.totals().lost, 0u);
  const auto off = switched_off();
  std::map<uint64_t, std::string> names;
  for (const json& symbol : session.manifest()["symbols"]) {
    names[std::stoull(symbol["function_id"].get<std::string>(), nullptr, 16)] =
        symbol["name"].get<std::string>();
  }
  std::set<std::string> named;
  for (const auto& [id, one] : off) {
    named.insert(names[id]);
    EXPECT_GT(one["calls_per_second"].get<uint64_t>(), kMaxRate) << names[id];
  }
  EXPECT_EQ(named.count("leaf"), 1u);
  EXPECT_EQ(named.count("recursive"), 1u);
  EXPECT_EQ(named.count("busy"), 0u);
  std::map<uint64_t, uint64_t> calls;
  uint64_t late_calls = 0;
  for (uint32_t thread = 0; thread < session.totals().threads; ++thread) {
    session.for_each_event(thread, [&](const RecordedSession::StoredEvent& event) {
      if (event.is_return) return;
      ++calls[event.function_id];
      const auto found = off.find(event.function_id);
      if (found == off.end()) return;
      late_calls += event.timestamp_ns > found->second["at_ns"].get<uint64_t>() ? 1 : 0;
    });
  }
  EXPECT_EQ(late_calls, 0u) << "they are off from the moment that is said";
  for (const auto& [id, one] : off) EXPECT_GT(calls[id], kMaxRate) << names[id];
  const Ending inspected = collector_.ctl({"inspect", session.directory()});
  EXPECT_NE(inspected.output.find("functions that --max-rate switched off: "), std::string::npos);
  EXPECT_NE(inspected.output.find("leaf ("), std::string::npos) << inspected.output;
}

TEST_P(FunctionFilterE2eTest, RefusesUnmatchedPatternsWithoutChange) {
  start();
  const Ending none = collector_.ctl({"filter", "--set", "--only", "no_such_function"});
  EXPECT_FALSE(none.exited_with(0));
  EXPECT_NE((none.output + none.errors).find("no_such_function"), std::string::npos);
  EXPECT_FALSE(collector_.ctl({"filter", "--set"}).exited_with(0));
  const uint64_t before = events_shown();
  ASSERT_TRUE(eventually(seconds(30), [&] { return events_shown() > before + 1000; }));
  EXPECT_FALSE(finish().manifest().contains("function_filters"));
}

INSTANTIATE_TEST_SUITE_P(Ways, FunctionFilterE2eTest,
                         ::testing::Values(Way{"InstrumentFunctions", "busy", "thread"},
                                           Way{"XRay", "xray_plain", "thread"},
                                           Way{"XRayWithDrainProcess", "xray_plain", "process"}),
                         [](const ::testing::TestParamInfo<Way>& param) {
                           return std::string(param.param.name);
                         });

}  // namespace
}  // namespace collect::e2e
