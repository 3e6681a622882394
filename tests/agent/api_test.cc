// The C API alone: what it makes of the options, and what it hands on. What it calls is this
// file's.
#include "collect/agent.h"

#include <gtest/gtest.h>
#include <string.h>

#include <string>

#include "agent/drain/drain.h"
#include "agent/lifecycle.h"
#include "agent/ring/hooks/hooks.h"
#include "agent/ring/recorder.h"

namespace collect::agent {
namespace {

struct Called {
  uint32_t starts = 0;
  Settings settings;
  StartError answer = StartError::kNone;
  uint32_t stopped_within_ms = 0;
  uint64_t function = 0;
  atf::EventKind kind{};
  HookFrame frame;
  bool ready = true;
  std::string counter;
  int64_t counter_value = 0;
};
Called called;

}  // namespace

StartError start_agent(const Settings& settings) {
  ++called.starts;
  called.settings = settings;
  return called.answer;
}
void stop_agent(uint32_t timeout_ms) {
  called.stopped_within_ms = timeout_ms;
}
const char* agent_status() {
  return "the status";
}
void on_event(uint64_t function, atf::EventKind kind, const HookFrame& frame) {
  called.function = function;
  called.kind = kind;
  called.frame = frame;
}
void set_counter(const char* name, int64_t value) {
  called.counter = name;
  called.counter_value = value;
}
bool recorder_ready() {
  return called.ready;
}
RecorderStats published_stats() {
  RecorderStats stats{};
  stats.recorded = 11;
  stats.lost = 12;
  stats.detail_recorded = 13;
  stats.detail_lost = 14;
  stats.buffer_used = 15;
  stats.buffer_bytes = 16;
  stats.threads = 17;
  return stats;
}
bool is_recording() {
  return true;
}
bool drain_connected() {
  return true;
}

namespace {

class ApiTest : public testing::Test {
 protected:
  ApiTest() {
    called = {};
    options_.struct_bytes = sizeof options_;
    options_.connect = "host:1";
  }
  int start() { return collect_agent_start(&options_); }
  // With one field changed, and changed back.
  template <class Field, class Value>
  int start_with(Field& field, Value value) {
    const Field before = field;
    field = static_cast<Field>(value);
    called.settings = {};
    const int result = start();
    field = before;
    return result;
  }

  collect_agent_options options_{};
};

TEST_F(ApiTest, ZeroMeansTheDefault) {
  ASSERT_EQ(start(), 0);
  const Settings defaults;
  const Settings& given = called.settings;
  EXPECT_EQ(given.role, Role::kConnect);
  EXPECT_STREQ(given.address, "host:1");
  EXPECT_EQ(given.buffer_mb, 64u);
  EXPECT_EQ(given.spool_mb, 256u);
  EXPECT_EQ(given.atf_version, 2);
  EXPECT_EQ(given.full, FullPolicy::kDrop);
  EXPECT_EQ(given.drain, DrainBy::kThread);
  EXPECT_EQ(given.exit_flush_ms, defaults.exit_flush_ms);
  EXPECT_EQ(given.detail, 0);
  EXPECT_TRUE(given.start_recording);
  EXPECT_STREQ(given.token_file, "");
  EXPECT_STREQ(given.tag, "");
  EXPECT_STREQ(given.spool, "");
}

TEST_F(ApiTest, EveryFieldIsHandedOn) {
  options_.connect = nullptr;
  options_.listen = "tcp:2";
  options_.token_file = "/token";
  options_.tag = "tag";
  options_.spool = "/spool";
  options_.buffer_mb = 3;
  options_.spool_mb = 4;
  options_.full_policy = COLLECT_FULL_OVERWRITE;
  options_.atf_version = 1;
  options_.detail = COLLECT_DETAIL_ARMED;
  options_.start_idle = 1;
  options_.drain = COLLECT_DRAIN_PROCESS;
  options_.max_depth = 5;
  options_.max_rate = 6;
  options_.longer_than_ns = 7;
  options_.max_time_ns = 8;
  options_.max_bytes = 9;
  options_.this_process_only = 1;
  options_.only = "parse_*;lex";
  options_.except = "parse_char";
  ASSERT_EQ(start(), 0);
  const Settings& given = called.settings;
  EXPECT_EQ(given.role, Role::kListen);
  EXPECT_STREQ(given.address, "tcp:2");
  EXPECT_STREQ(given.token_file, "/token");
  EXPECT_STREQ(given.tag, "tag");
  EXPECT_STREQ(given.spool, "/spool");
  EXPECT_EQ(given.buffer_mb, 3u);
  EXPECT_EQ(given.spool_mb, 4u);
  EXPECT_EQ(given.full, FullPolicy::kOverwrite);
  EXPECT_EQ(given.atf_version, 1);
  EXPECT_EQ(given.detail, 1);
  EXPECT_FALSE(given.start_recording);
  EXPECT_EQ(given.drain, DrainBy::kProcess);
  EXPECT_EQ(given.max_depth, 5u);
  EXPECT_EQ(given.max_rate, 6u);
  EXPECT_EQ(given.longer_than_ns, 7u);
  EXPECT_EQ(given.max_time_ns, 8u);
  EXPECT_EQ(given.max_bytes, 9u);
  EXPECT_TRUE(given.this_process_only);
  EXPECT_EQ(given.child_of, 0);
  EXPECT_STREQ(given.only, "parse_*;lex");
  EXPECT_STREQ(given.except, "parse_char");
  EXPECT_EQ(given.exit_flush_ms, 60'000u);
}

TEST_F(ApiTest, ValuesBeyondTheirLimitsAreRefused) {
  options_.spool = "/spool";
  struct Limit {
    uint32_t collect_agent_options::* field;
    uint32_t most;
  };
  for (const Limit& limit : {Limit{&collect_agent_options::buffer_mb, 16'384},
                             {&collect_agent_options::spool_mb, 65'536},
                             {&collect_agent_options::full_policy, 2},
                             {&collect_agent_options::detail, 2},
                             {&collect_agent_options::drain, 1},
                             {&collect_agent_options::max_depth, 1'000'000},
                             {&collect_agent_options::max_rate, 1'000'000'000},
                             {&collect_agent_options::atf_version, 2}}) {
    EXPECT_EQ(start_with(options_.*limit.field, limit.most), 0);
    EXPECT_EQ(start_with(options_.*limit.field, limit.most + 1), COLLECT_AGENT_SETTINGS);
  }
  EXPECT_EQ(start_with(options_.longer_than_ns, 3'600'000'000'000u), 0);
  EXPECT_EQ(start_with(options_.longer_than_ns, 3'600'000'000'001u), COLLECT_AGENT_SETTINGS);
  EXPECT_EQ(start_with(options_.max_time_ns, 100'000'000'000'000'000u), 0);
  EXPECT_EQ(start_with(options_.max_time_ns, 100'000'000'000'000'001u), COLLECT_AGENT_SETTINGS);
  EXPECT_EQ(start_with(options_.max_bytes, uint64_t{1} << 60), 0);
  EXPECT_EQ(start_with(options_.max_bytes, (uint64_t{1} << 60) + 1), COLLECT_AGENT_SETTINGS);
  // Without a spool the field may be what an earlier header left there.
  options_.spool = nullptr;
  EXPECT_EQ(start_with(options_.spool_mb, 65'537), 0);
}

TEST_F(ApiTest, TextsThatDoNotFitAreRefused) {
  struct Limit {
    const char* collect_agent_options::* field;
    size_t most;
  };
  for (const Limit& limit : {Limit{&collect_agent_options::connect, 1023},
                             {&collect_agent_options::token_file, 255},
                             {&collect_agent_options::spool, 255},
                             {&collect_agent_options::tag, 63}}) {
    const std::string longest(limit.most, 'x');
    EXPECT_EQ(start_with(options_.*limit.field, longest.c_str()), 0);
    EXPECT_EQ(start_with(options_.*limit.field, (longest + "x").c_str()), COLLECT_AGENT_SETTINGS);
  }
  options_.connect = nullptr;
  EXPECT_EQ(start(), COLLECT_AGENT_SETTINGS) << "no address at all";
}

TEST_F(ApiTest, EarlierAndLaterHeadersAreUnderstood) {
  options_.drain = COLLECT_DRAIN_PROCESS;
  options_.spool = "/spool";
  options_.spool_mb = 9;
  const size_t first = offsetof(collect_agent_options, drain);
  options_.struct_bytes = static_cast<uint32_t>(first);
  ASSERT_EQ(start(), 0);
  EXPECT_EQ(called.settings.drain, DrainBy::kThread) << "beyond the structure";
  EXPECT_STREQ(called.settings.spool, "");
  options_.struct_bytes = static_cast<uint32_t>(first - 1);
  EXPECT_EQ(start(), COLLECT_AGENT_SETTINGS);
  struct Later {
    collect_agent_options known;
    uint64_t unknown = UINT64_MAX;
  } later{options_};
  later.known.struct_bytes = sizeof later;
  ASSERT_EQ(collect_agent_start(&later.known), 0);
  EXPECT_EQ(called.settings.spool_mb, 9u);
  EXPECT_EQ(collect_agent_start(nullptr), COLLECT_AGENT_SETTINGS);
  EXPECT_EQ(called.starts, 2u);
}

TEST_F(ApiTest, ErrorsHaveTheirNumbers) {
  for (const auto& [error, number] : {std::pair{StartError::kSettings, COLLECT_AGENT_SETTINGS},
                                      {StartError::kNoMemory, COLLECT_AGENT_NO_MEMORY},
                                      {StartError::kNoThread, COLLECT_AGENT_NO_THREAD},
                                      {StartError::kPrivileged, COLLECT_AGENT_PRIVILEGED}}) {
    called.answer = error;
    EXPECT_EQ(start(), number);
  }
  collect_agent_stop(77);
  EXPECT_EQ(called.stopped_within_ms, 77u);
  EXPECT_STREQ(collect_agent_status(), "the status");
}

TEST_F(ApiTest, EventsAreHandedOnWithTheirCallSite) {
  const auto* const function = reinterpret_cast<const void*>(uintptr_t{0x1000});
  const auto* const site = reinterpret_cast<const void*>(uintptr_t{0x2000});
  collect_enter(function, site);
  EXPECT_EQ(called.function, 0x1000u);
  EXPECT_EQ(called.kind, atf::EventKind::kCall);
  EXPECT_EQ(called.frame.call_site, 0x2000u);
  EXPECT_EQ(called.frame.valid, atf::kDetailLrValid);
  EXPECT_EQ(called.frame.place, 0u);
  collect_exit(function, nullptr);
  EXPECT_EQ(called.kind, atf::EventKind::kReturn);
  EXPECT_EQ(called.frame.call_site, 0u);
  EXPECT_EQ(called.frame.valid, 0u);
  collect_exception(function, site);
  EXPECT_EQ(called.kind, atf::EventKind::kException);
}

TEST_F(ApiTest, CountersAreThoseOfTheRing) {
  collect_counter("queue_depth", -3);
  EXPECT_EQ(called.counter, "queue_depth");
  EXPECT_EQ(called.counter_value, -3);
}

TEST_F(ApiTest, StatsAreThoseOfTheRecorder) {
  struct {
    collect_agent_stats stats;
    uint64_t behind = 99;
  } room{};
  collect_agent_stats& stats = room.stats;
  stats.recorded = 99;
  collect_agent_get_stats(nullptr);
  stats.struct_bytes = sizeof stats - 1;
  collect_agent_get_stats(&stats);
  EXPECT_EQ(stats.recorded, 99u) << "too short, so it is left alone";
  stats.struct_bytes = sizeof room;
  collect_agent_get_stats(&stats);
  EXPECT_EQ(stats.struct_bytes, sizeof room);
  EXPECT_EQ(stats.recording, 1u);
  EXPECT_EQ(stats.connected, 1u);
  EXPECT_EQ(stats.threads, 17u);
  EXPECT_EQ(stats.recorded, 11u);
  EXPECT_EQ(stats.lost, 12u);
  EXPECT_EQ(stats.detail_recorded, 13u);
  EXPECT_EQ(stats.detail_lost, 14u);
  EXPECT_EQ(stats.buffer_used, 15u);
  EXPECT_EQ(stats.buffer_bytes, 16u);
  EXPECT_EQ(room.behind, 99u);
  called.ready = false;
  collect_agent_get_stats(&stats);
  EXPECT_EQ(stats.recording, 0u);
  EXPECT_EQ(stats.recorded, 0u);
}

}  // namespace
}  // namespace collect::agent
