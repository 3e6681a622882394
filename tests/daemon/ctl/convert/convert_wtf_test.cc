// ATF sessions as WTF-trace and back: what comes back, what is counted, and what others see of it.
#include "daemon/ctl/convert/convert_command.h"

#include <gmock/gmock.h>
#include <map>
#include <random>

#include "formats/wtf/binary/event_types.h"
#include "formats/wtf/binary/writer.h"
#include "storage/convert/wtf/wtf_zone_name.h"
#include "tests/daemon/ctl/convert/wtf_sessions.h"

namespace collect::ctl {
namespace {

using atf::EventKind;
using exports::Target;
using namespace std::string_literals;
using nlohmann::json;
using testing::in_us;
using testing::kSecond;
using testing::kStart;
using testing::kUnix;
using testing::Plan;
using testing::PlannedThread;
using testing::Step;
namespace fs = std::filesystem;

class ConvertWtf : public testing::WtfSessions {};

// Nested calls of a few functions with everything that real captures have: a beginning within
// calls, returns that are missing, exceptions, an end within calls.
PlannedThread random_thread(uint32_t seed, size_t events, uint64_t step_ns) {
  std::mt19937 random(seed);
  const auto below = [&](uint32_t limit) { return static_cast<uint32_t>(random() % limit); };
  PlannedThread thread{1000 + seed, "worker " + std::to_string(seed), {}};
  std::vector<std::string> open;
  uint64_t ns = kStart + below(5000);
  thread.steps.push_back({ns, EventKind::kReturn, "entered before"});
  while (thread.steps.size() < events) {
    ns += below(static_cast<uint32_t>(2 * step_ns));
    const uint32_t what = below(100);
    if (what < 52 && open.size() < 60) {
      open.push_back("ns::function_" + std::to_string(below(40)) + "(int)");
      thread.steps.push_back({ns, EventKind::kCall, open.back()});
    } else if (what < 54) {
      thread.steps.push_back({ns, EventKind::kException, "ns::thrower()"});
    } else if (what < 56) {
      thread.steps.push_back({ns, EventKind::kReturn, "never called"});
    } else if (what < 58 && open.size() > 3) {
      // The outer of two returns alone: its name must not be open further in.
      const std::string outer = "outer " + std::to_string(thread.steps.size());
      thread.steps.push_back({ns, EventKind::kCall, outer});
      thread.steps.push_back({ns + 1, EventKind::kCall, "never returns"});
      thread.steps.push_back({ns + 2, EventKind::kReturn, outer});
      ns += 2;
    } else if (what < 59 && open.size() > 3) {
      // Unwound to the third but last, the innermost without an event of its own.
      const std::string outer = "unwound " + std::to_string(thread.steps.size());
      thread.steps.push_back({ns, EventKind::kCall, outer});
      thread.steps.push_back({ns + 1, EventKind::kCall, "never returns"});
      thread.steps.push_back({ns + 2, EventKind::kException, outer});
      for (size_t i = 0; i < 2; ++i) {
        thread.steps.push_back({ns + 2, EventKind::kException, open.back()});
        open.pop_back();
      }
      ns += 2;
    } else if (!open.empty()) {
      thread.steps.push_back({ns, EventKind::kReturn, open.back()});
      open.pop_back();
    }
  }
  thread.steps.resize(events);
  return thread;
}

TEST_F(ConvertWtf, SessionComesBackWithEveryCallAndReturn) {
  Plan plan;
  for (uint32_t seed = 1; seed <= 5; ++seed) plan.push_back(random_thread(seed, 40'000, 700));
  plan.push_back({7, "idle", {}});
  const std::string session = build(plan);
  EXPECT_EQ(run_convert(session, Target::kWtf, at("x.wtf-trace")), 0);
  EXPECT_EQ(report_["counts"]["events"], 5 * 40'000 + 0);
  EXPECT_GT(report_["counts"]["returns without a call"], 100);
  EXPECT_GT(report_["counts"]["calls closed by an outer return"], 100);
  ASSERT_EQ(report_["left_out"].size(), 1u) << report_["left_out"];
  EXPECT_TRUE(report_["left_out"].begin().key().starts_with("times finer")) << said_;

  const wtf::FileReport file = check(written());
  ASSERT_EQ(file.zones.size(), plan.size());
  for (size_t i = 0; i < plan.size(); ++i) {
    EXPECT_EQ(file.zones[i].name, wtf::thread_zone_name("app", 42, plan[i].name, plan[i].tid));
    EXPECT_EQ(file.zones[i].type, "native_script");
    EXPECT_EQ(file.zones[i].open_scopes, 0u);
    EXPECT_EQ(file.zones[i].unmatched_leaves, 0u);
    EXPECT_EQ(file.zones[i].backward_steps, 0u);
  }
  // The time of day of the first event, in whole milliseconds.
  EXPECT_EQ(file.header->timebase_ms, 1'700'000'000'987.0);
  EXPECT_LT(*file.first_us, 1000u);
  // Zones change once in a batch, so that an event takes little more than its eight bytes.
  EXPECT_LT(file.bytes, 10 * file.events);

  EXPECT_EQ(run_convert(written(), Target::kAtf, at("back")), 0) << said_;
  const Plan back = read_session(written());
  ASSERT_EQ(back.size(), plan.size());
  for (size_t i = 0; i < plan.size(); ++i) {
    EXPECT_EQ(back[i].tid, plan[i].tid);
    EXPECT_EQ(back[i].name, plan[i].name);
    ASSERT_TRUE(back[i].steps == in_us(plan[i].steps)) << "thread " << i;
  }
  const storage::Manifest manifest = manifest_of(written());
  EXPECT_EQ(manifest.identity.process_name, "app");
  EXPECT_EQ(manifest.identity.executable, "/opt/app");
  EXPECT_EQ(manifest.identity.pid, 42u);
  EXPECT_EQ(manifest.identity.os, atf::Os::kLinux);
  // The two clocks stand to each other as they did, to a microsecond.
  const auto shift = [](uint64_t unix_ns, uint64_t ns) { return unix_ns - ns; };
  const uint64_t before = shift(kUnix, kStart);
  const uint64_t after = shift(manifest.identity.start_unix_ns, manifest.identity.start_ns);
  EXPECT_LT(std::max(before, after) - std::min(before, after), 1000u);
}

TEST_F(ConvertWtf, ExceptionLeavesItsScope) {
  Plan plan{{1, "main", {}}};
  const std::pair<EventKind, const char*> steps[] = {
      {EventKind::kCall, "main"}, {EventKind::kCall, "thrower"}, {EventKind::kException, "thrower"},
      {EventKind::kCall, "next"}, {EventKind::kReturn, "next"},  {EventKind::kReturn, "main"}};
  uint64_t ns = kStart / 1000 * 1000;
  for (const auto& [kind, name] : steps) plan[0].steps.push_back({ns += 1000, kind, name});
  EXPECT_EQ(run_convert(build(plan), Target::kWtf, at("x.wtf-trace")), 0);
  EXPECT_EQ(report_["counts"]["exceptions"], 1);
  EXPECT_FALSE(report_["counts"].contains("calls closed by an outer return")) << report_["counts"];
  const wtf::FileReport file = check(written());
  EXPECT_EQ(file.zones[0].scopes, 3u);
  EXPECT_EQ(file.zones[0].max_scope_depth, 2u);
  EXPECT_EQ(run_convert(written(), Target::kAtf, at("back")), 0) << said_;
  EXPECT_TRUE(read_session(written())[0].steps == in_us(plan[0].steps));
}

// Expected from the plan, seen by the published library: time, name and depth of every event.
TEST_F(ConvertWtf, ViewerSeesEveryCallAtItsDepth) {
  Plan plan{{1, "main", {}}, {2, "other", {}}};
  std::map<std::string, std::vector<std::pair<std::string, size_t>>> expected;
  std::vector<std::vector<double>> times(2);
  for (size_t i = 0; i < 2; ++i) {
    std::mt19937 random(static_cast<uint32_t>(i) + 9);
    std::vector<std::string> open;
    auto& list = expected[wtf::thread_zone_name("app", 42, plan[i].name, plan[i].tid)];
    for (uint64_t ns = kStart; plan[i].steps.size() < 3000; ns += random() % 4000) {
      times[i].push_back(static_cast<double>(ns / 1000));
      if (open.size() < 30 && random() % 2 == 0) {
        open.push_back("f" + std::to_string(random() % 300) + "<a, b>(c) const");
        list.emplace_back(open.back(), open.size() - 1);
        plan[i].steps.push_back({ns, EventKind::kCall, open.back()});
      } else if (!open.empty()) {
        list.emplace_back("wtf.scope#leave", open.size());
        plan[i].steps.push_back({ns, EventKind::kReturn, open.back()});
        open.pop_back();
      } else {
        times[i].pop_back();
      }
    }
    for (; !open.empty(); open.pop_back()) {
      list.emplace_back("wtf.scope#leave", open.size());
      plan[i].steps.push_back({kStart + kSecond, EventKind::kReturn, open.back()});
      times[i].push_back(static_cast<double>((kStart + kSecond) / 1000));
    }
  }
  run_convert(build(plan), Target::kWtf, at("x.wtf-trace"));
  check(written());
  const json seen = viewed(written());
  if (seen.is_null()) GTEST_SKIP() << "node, the package tracing-framework or the pack is missing";
  ASSERT_TRUE(seen["ok"].get<bool>());
  ASSERT_EQ(seen["zones"].size(), 2u);
  const double epoch = times[0][0] - seen["zones"][0]["events"][0]["t"].get<double>() * 1000;
  for (size_t i = 0; i < 2; ++i) {
    const json& zone = seen["zones"][i];
    const auto& list = expected[zone["name"].get<std::string>()];
    ASSERT_EQ(zone["events"].size(), list.size());
    for (size_t n = 0; n < list.size(); ++n) {
      ASSERT_EQ(zone["events"][n]["n"], list[n].first);
      ASSERT_EQ(zone["events"][n]["d"], list[n].second) << n;
      ASSERT_NEAR(zone["events"][n]["t"].get<double>() * 1000 + epoch, times[i][n], 0.01);
    }
  }
}

TEST_F(ConvertWtf, OddNamesAreMadeSafeAndCounted) {
  const std::vector<std::string> odd = {"wtf.scope#leave",
                                        "wtf.zone#set",
                                        "collect#return",
                                        "with\nline\r\nends",
                                        "nul\0in"s,
                                        "\xFF\xFE no text",
                                        std::string(5000, 'x'),
                                        "operator()(int) \"q\" \\",
                                        "日本語::関数",
                                        "\u2028",
                                        "wtf.event#define",
                                        "a(b",
                                        "return",
                                        "",
                                        "wtf.scope#enterTracing"};
  Plan plan{{1, "odd \n/ (9) name", {}}, {1, "odd \n/ (9) name", {}}};
  uint64_t ns = kStart / 1000 * 1000;
  for (const std::string& name : odd) {
    plan[0].steps.push_back({ns += 1000, EventKind::kCall, name});
    plan[0].steps.push_back({ns += 1000, EventKind::kReturn, name});
    plan[1].steps.push_back({ns += 1000, EventKind::kException, name});
  }
  const std::string session = build(plan);
  EXPECT_EQ(run_convert(session, Target::kWtf, at("x.wtf-trace")), 0);
  uint64_t changed = 0;
  for (const auto& [what, count] : report_["left_out"].items()) {
    if (what.starts_with("names of functions changed")) changed = count;
  }
  EXPECT_GE(changed, 8u) << report_["left_out"];
  const wtf::FileReport file = check(written());
  ASSERT_EQ(file.zones.size(), 2u) << "threads of equal names and numbers stay apart";
  EXPECT_EQ(file.zones[0].scopes, odd.size());
  const json seen = viewed(written());
  if (!seen.is_null()) {
    EXPECT_EQ(seen["zones"][0]["events"].size(), 2 * odd.size());
  }
  EXPECT_EQ(run_convert(written(), Target::kAtf, at("back")), 0) << said_;
  const Plan back = read_session(written());
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(back[0].name, plan[0].name);
  EXPECT_EQ(back[1].tid, 1u);
  ASSERT_EQ(back[0].steps.size(), plan[0].steps.size());
  for (size_t i = 0; i < back[0].steps.size(); ++i) {
    EXPECT_EQ(back[0].steps[i].ns, plan[0].steps[i].ns);
    EXPECT_EQ(back[0].steps[i].kind, plan[0].steps[i].kind);
  }
  EXPECT_EQ(back[0].steps[14].name, "operator()(int) \"q\" \\");
  EXPECT_EQ(back[0].steps[16].name, "日本語::関数");
}

// Three hours: a file each 71 minutes, and a call that is open over all of them.
TEST_F(ConvertWtf, LongSessionBecomesSeveralFiles) {
  Plan plan{{1, "main", {{kStart, EventKind::kCall, "whole"}}}, {2, "second", {}}};
  const uint64_t end = kStart + 3 * 3600 * kSecond;
  for (uint64_t ns = kStart + kSecond; ns < end; ns += 10 * kSecond) {
    plan[ns / kSecond % 2].steps.push_back({ns, EventKind::kCall, "tick"});
    plan[ns / kSecond % 2].steps.push_back({ns + 5000, EventKind::kReturn, "tick"});
  }
  plan[0].steps.push_back({end, EventKind::kReturn, "whole"});
  run_convert(build(plan), Target::kWtf, at("x.wtf-trace"));
  ASSERT_EQ(report_["written"].size(), 3u);
  EXPECT_EQ(written(0), at("x.wtf-trace"));
  EXPECT_EQ(written(2), at("x.3.wtf-trace"));
  std::vector<std::string> files;
  for (size_t i = 0; i < 3; ++i) files.push_back(written(i));
  std::vector<std::vector<Step>> all(2);
  uint64_t whole_calls = 0;
  for (size_t i = 0; i < files.size(); ++i) {
    const wtf::FileReport file = check(files[i]);
    EXPECT_EQ(file.zones.size(), 2u);
    EXPECT_EQ(file.zones[0].open_scopes + file.zones[0].unmatched_leaves, 0u);
    run_convert(files[i], Target::kAtf, at("back" + std::to_string(i)));
    const Plan back = read_session(written());
    ASSERT_EQ(back.size(), 2u);
    for (size_t t = 0; t < 2; ++t) {
      for (const Step& step : back[t].steps) {
        if (step.name == "whole" && step.kind == EventKind::kCall && ++whole_calls > 1) continue;
        all[t].push_back(step);
      }
    }
  }
  EXPECT_EQ(whole_calls, 3u) << "opened again in each file";
  for (size_t t = 0; t < 2; ++t) EXPECT_TRUE(all[t] == in_us(plan[t].steps)) << t;
  // Without --force a further file of that name is not replaced, and nothing stays.
  fs::remove(files[0]);
  EXPECT_EQ(run_convert(at("built"), Target::kWtf, at("x.wtf-trace")), 2);
  EXPECT_FALSE(fs::exists(files[0]));
  std::ofstream(at("x.2.json")) << "mine";
  EXPECT_EQ(run_convert(at("built"), Target::kWtfJson, at("x.json")), 2);
  EXPECT_THAT(said_, ::testing::HasSubstr("x.2.json is there already; --force replaces it"));
  EXPECT_FALSE(fs::exists(at("x.json")));
  EXPECT_EQ(fs::file_size(at("x.2.json")), 4u);
}

TEST_F(ConvertWtf, MoreFunctionsThanTypeNumbersTakeASecondFile) {
  constexpr uint64_t kFunctions = 66'000;
  Plan plan{{1, "main", {{kStart, EventKind::kCall, "whole"}}}};
  for (uint64_t i = 0; i < kFunctions; ++i) {
    const std::string name = "function " + std::to_string(i);
    plan[0].steps.push_back({kStart + i * 2000, EventKind::kCall, name});
    plan[0].steps.push_back({kStart + i * 2000 + 1000, EventKind::kReturn, name});
  }
  plan[0].steps.push_back({kStart + kSecond, EventKind::kReturn, "whole"});
  run_convert(build(plan), Target::kWtf, at("x.wtf-trace"));
  ASSERT_EQ(report_["written"].size(), 2u);
  const std::string first = written(0), second = written(1);
  const wtf::FileReport a = check(first), b = check(second);
  EXPECT_EQ(a.zones[0].scopes + b.zones[0].scopes, kFunctions + 2);
  run_convert(second, Target::kAtf, at("back"));
  const Plan back = read_session(written());
  EXPECT_EQ(back[0].steps.front().name, "whole");
  EXPECT_EQ(back[0].steps.back(), in_us({plan[0].steps.back()})[0]);
}

// The writer opens 4096 calls again in a next file; what is within them returns without a call.
TEST_F(ConvertWtf, CallsTooDeepToBeOpenedAgainReturnAlone) {
  constexpr uint64_t kDepth = 5000;
  Plan plan{{1, "main", {}}};
  for (uint64_t i = 0; i < kDepth; ++i) {
    plan[0].steps.push_back({kStart + i * 1000, EventKind::kCall, "f" + std::to_string(i)});
  }
  const uint64_t later = kStart + 7200 * kSecond;
  plan[0].steps.push_back({later, EventKind::kCall, "new"});
  plan[0].steps.push_back({later, EventKind::kReturn, "new"});
  for (uint64_t i = 0; i < kDepth; ++i) {
    const std::string name = "f" + std::to_string(kDepth - 1 - i);
    plan[0].steps.push_back({later + i * 1000, EventKind::kReturn, name});
  }
  run_convert(build(plan), Target::kWtf, at("x.wtf-trace"));
  ASSERT_EQ(report_["written"].size(), 2u);
  const std::string second = written(1);
  const auto file = wtf::check_file(atf::testing::file_bytes(second));
  EXPECT_EQ(file.zones[0].scopes, wtf::kMaxRememberedScopes + 1);
  EXPECT_EQ(file.zones[0].unmatched_leaves + file.zones[0].open_scopes, 0u);
  run_convert(second, Target::kAtf, at("back"));
  const std::vector<Step> back = testing::WtfSessions::read_session(written())[0].steps;
  const std::vector<Step> planned = in_us(plan[0].steps);
  ASSERT_EQ(back.size(), wtf::kMaxRememberedScopes + 2 + kDepth);
  EXPECT_TRUE(std::equal(planned.end() - static_cast<ptrdiff_t>(kDepth), planned.end(),
                         back.end() - static_cast<ptrdiff_t>(kDepth)));
}

TEST_F(ConvertWtf, GapsAndMarkersComeBack) {
  Plan plan{{1, "main", {}}, {2, "other", {}}};
  for (uint64_t i = 0; i < 10; ++i) {
    plan[i % 2].steps.push_back({kStart + i * 1000, EventKind::kCall, "f"});
  }
  const std::string session = build(plan, [](convert::SessionBuilder& builder) {
    builder.lost(1, Lane::kIndex, 77, kLostRingFull | kLostReentry, 0, 0);
    EXPECT_TRUE(builder.event(1, kStart + 20'000, builder.function_of("g"), EventKind::kCall).ok());
    EXPECT_TRUE(builder.marker(kStart + 4500, "before the \"fifth\"").ok());
    EXPECT_TRUE(builder.marker(kStart + kSecond, "after all").ok());
  });
  run_convert(session, Target::kWtf, at("x.wtf-trace"));
  EXPECT_EQ(report_["counts"]["lost_events"], 77);
  EXPECT_EQ(report_["counts"]["calls open at the end"], 11);
  const wtf::FileReport file = check(written());
  EXPECT_EQ(file.zones[0].marks, 2u);
  EXPECT_EQ(file.zones[1].marks, 1u);
  const json seen = viewed(written());
  EXPECT_TRUE(seen.is_null() || seen["ok"].get<bool>());
  EXPECT_EQ(run_convert(written(), Target::kAtf, at("back")), 0) << said_;
  const storage::Manifest manifest = manifest_of(written());
  ASSERT_EQ(manifest.gaps.size(), 1u);
  EXPECT_EQ(manifest.gaps[0].thread, 1u);
  EXPECT_EQ(manifest.gaps[0].before_seq, 5u);
  EXPECT_EQ(manifest.gaps[0].lost, 77u);
  EXPECT_EQ(manifest.gaps[0].reasons, kLostRingFull | kLostReentry);
  ASSERT_EQ(manifest.markers.size(), 2u);
  EXPECT_EQ(manifest.markers[0].text, "before the \"fifth\"");
  EXPECT_EQ(manifest.markers[0].at_ns, (kStart + 4500) / 1000 * 1000);
  const Plan back = read_session(written());
  EXPECT_TRUE(back[0].steps == in_us(plan[0].steps)) << "calls at the end stay open";
}

TEST_F(ConvertWtf, WithoutATimeOfDayTheTimebaseIsZero) {
  convert::BuiltProcess process = WtfSessions::process();
  process.start_unix_ns = 0;
  run_convert(build({{1, "main", {{kStart, EventKind::kCall, "f"}}}}, {}, process), Target::kWtf,
              at("x.wtf-trace"));
  const wtf::FileReport file = check(written());
  EXPECT_EQ(file.header->timebase_ms, 0);
  EXPECT_EQ(file.first_us, 0u);
  // Nothing of the input is missing: a remark.
  EXPECT_EQ(run_convert(at("x.wtf-trace"), Target::kAtf, at("back")), 0);
  EXPECT_EQ(report_["missing"].size(), 0u) << report_;
  EXPECT_NE(report_["remarks"].dump().find("no time of day"), std::string::npos) << report_;
}

// ---- files of others

TEST_F(ConvertWtf, CountsUnrepresentableEventsByKind) {
  VectorSink sink;
  wtf::Writer writer(sink);
  wtf::FileHeader header;
  header.timebase_ms = 12;
  ASSERT_TRUE(writer.begin(header).ok());
  ASSERT_TRUE(writer.set_zone(*writer.create_zone("just a name", "script", "here")).ok());
  const uint32_t draw = *writer.define_scope("draw", "uint32 n");
  const uint32_t ping = *writer.define_instance("ping", "utf8 text");
  ASSERT_TRUE(writer.enter(draw, 1000, {7}).ok());
  ASSERT_TRUE(writer.enter_named("named", 2000).ok());
  ASSERT_TRUE(writer.event(ping, 3000, {"pong"}).ok());
  ASSERT_TRUE(writer.append_scope_data(3000, "key", "1").ok());
  ASSERT_TRUE(writer.leave(4000).ok());
  ASSERT_TRUE(writer.leave(5000).ok());
  ASSERT_TRUE(writer.begin_range(6000, 1, "range").ok());
  ASSERT_TRUE(writer.end_range(7000, 1).ok());
  ASSERT_TRUE(writer.branch_flow(7000, 2, 0, "flow").ok());
  ASSERT_TRUE(writer.start_frame(8000, 1).ok());
  ASSERT_TRUE(writer.end_frame(9000, 1).ok());
  ASSERT_TRUE(writer.discontinuity(9000).ok());
  ASSERT_TRUE(writer.mark(9000, "a mark", "[1,2]").ok());
  ASSERT_TRUE(writer.finish().ok());
  atf::testing::write_file(at("x.wtf-trace"), sink.bytes());
  EXPECT_EQ(run_convert(at("x.wtf-trace"), Target::kAtf, at("back")), 0);
  std::map<std::string, uint64_t> kinds;
  for (const auto& [what, count] : report_["left_out"].items()) {
    kinds[what.substr(0, what.find(':'))] = count;
  }
  const std::map<std::string, uint64_t> expected = {
      {"instance events", 1},   {"values appended to scopes", 1},
      {"time range events", 2}, {"flow events", 1},
      {"frame events", 2},      {"discontinuities", 1},
      {"scopes' arguments", 1}};
  EXPECT_EQ(kinds, expected);
  const Plan back = read_session(written());
  ASSERT_EQ(back.size(), 1u);
  EXPECT_EQ(back[0].name, "just a name");
  const std::vector<Step> steps = {{1000, EventKind::kCall, "draw"},
                                   {2000, EventKind::kCall, "named"},
                                   {4000, EventKind::kReturn, "named"},
                                   {5000, EventKind::kReturn, "draw"}};
  EXPECT_TRUE(back[0].steps == steps);
  EXPECT_EQ(manifest_of(written()).markers[0].text, "a mark [1,2]");
}

TEST(ZoneNames, AreTakenApart) {
  const convert::ZoneName plain =
      convert::parse_zone_name(wtf::thread_zone_name("a / (b)", 12, "t (1) / x", 34));
  EXPECT_EQ(plain.process, "a / (b)");
  EXPECT_EQ(plain.pid, 12u);
  EXPECT_EQ(plain.thread, "t (1) / x");
  EXPECT_EQ(plain.tid, 34u);
  EXPECT_EQ(convert::parse_zone_name(convert::numbered_zone_name("p (1) / t (2)", 7)).tid, 2u);
  const convert::ZoneName marked = convert::parse_zone_name("p (1) / t [thread 7 (2)");
  EXPECT_EQ(marked.thread, "t [thread 7");
  EXPECT_EQ(marked.tid, 2u);
  for (const char* other : {"", "main", "(1)", "x (1)", " / ", "a (1) / b", "a / b (2)", "]", ")",
                            "a (99999999999) / b (1)", "a (-1) / b (1)"}) {
    const convert::ZoneName name = convert::parse_zone_name(other);
    EXPECT_EQ(name.thread, other);
    EXPECT_FALSE(name.tid.has_value());
  }
}

}  // namespace
}  // namespace collect::ctl
