// ConvertSession and `collectctl convert --at-collector` on real sessions of a real collectord:
// there and back, each refusal, a daemon that is killed in the middle, and a disk without room.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "tests/e2e/collector_process.h"
#include "tests/e2e/raw_agent.h"
#include "tests/e2e/recorded_session.h"
#include "tests/formats/reference_files.h"

namespace collect::e2e {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// What was recorded: index.lod comes later, and holds nothing that is not in the events.
std::map<std::string, std::string> files_of(const std::string& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (!entry.is_regular_file() || entry.path().filename().string().starts_with("index.lod"))
      continue;
    files[fs::relative(entry.path(), directory).string()] = bytes_of(entry.path());
  }
  return files;
}

// "session_…/pid_N"
std::string name_of(const std::string& directory) {
  const fs::path path = directory;
  return path.parent_path().filename().string() + "/" + path.filename().string();
}

// With its names: looking them up writes the manifest once more.
json session_of(const CollectorProcess& collector, const std::string& name) {
  json found;
  EXPECT_TRUE(eventually(seconds(60),
                         [&] {
                           const Ending listed = collector.ctl({"--json", "sessions"});
                           const json all = json::parse(listed.output, nullptr, false);
                           if (!all.is_object()) return false;
                           for (const json& one : all["sessions"]) {
                             if (one["name"] == "sessions/" + name) found = one;
                           }
                           return found.is_object() && found.value("symbols", "") != "pending";
                         }))
      << name << " is not listed";
  return found;
}

// By programs that know nothing of ours.
void expect_reference_ok(const std::string& scratch, const std::string& directory) {
  for (const auto& program : reference::independent_programs("check_atf.py", "atf_check.py")) {
    const Ending checked =
        run(scratch, {"python3", "-B", program.string(), directory}, {}, seconds(300));
    EXPECT_TRUE(checked.exited_with(0)) << program << checked.output << checked.errors;
  }
}

class ConvertSessionTest : public ::testing::Test {
 protected:
  // Two threads that make so many calls each, recorded and sealed: their session.
  RecordedSession record(CollectorProcess& collector, uint32_t calls, bool with_detail) {
    Environment environment = collector.tracing();
    if (with_detail) environment["COLLECT_DETAIL"] = "on";
    ChildProcess job(scratch_.path(),
                     {traced_program("chaos"), scratch_ / "progress", "2", std::to_string(calls)},
                     environment);
    EXPECT_TRUE(job.wait(seconds(120)).exited_with(0)) << job.errors();
    auto sessions = sealed_sessions(collector.root(), job.pid());
    EXPECT_EQ(sessions.size(), 1u);
    session_of(collector, name_of(sessions.front().directory()));
    return std::move(sessions.front());
  }
  RecordedSession record_small(CollectorProcess& collector) {
    return record(collector, 20'000, true);
  }
  // It takes so long to convert that something can happen meanwhile.
  RecordedSession record_large(CollectorProcess& collector) {
    return record(collector, 1'000'000, false);
  }
  Ending convert(const CollectorProcess& collector, const std::string& name, int version) {
    return collector.ctl(
        {"convert", "--at-collector", name, "--atf-version", std::to_string(version)},
        seconds(120));
  }
  std::vector<std::string> names_in(const std::string& root) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(root)) {
      const std::string name = entry.path().filename();
      if (name != ".collectord.lock" && name != ".collector_id") names.push_back(name);
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  Scratch scratch_;
};

// Without the agent's numbers of its streams: in which order two threads that begin at once get
// them says nothing of the order in which they come.
json threads_of(const RecordedSession& session) {
  json threads = session.manifest()["threads"];
  for (json& thread : threads) thread.erase("stream_id");
  return threads;
}

// Event by event, read by offset and not by our reader.
void expect_same_events(const RecordedSession& first, const RecordedSession& other) {
  ASSERT_EQ(first.totals().events, other.totals().events);
  for (uint32_t n = 0; n < first.totals().threads; ++n) {
    std::vector<RecordedSession::StoredEvent> events;
    first.for_each_event(n, [&](const auto& event) { events.push_back(event); });
    size_t at = 0;
    other.for_each_event(n, [&](const auto& event) {
      ASSERT_LT(at, events.size());
      ASSERT_EQ(event.timestamp_ns, events[at].timestamp_ns);
      ASSERT_EQ(event.function_id, events[at].function_id);
      ASSERT_EQ(event.is_return, events[at].is_return);
      ++at;
    });
    EXPECT_EQ(at, events.size()) << n;
  }
}

TEST_F(ConvertSessionTest, RealSessionGoesThereAndBackByteForByte) {
  CollectorProcess collector(scratch_);
  const RecordedSession session = record_small(collector);
  ASSERT_EQ(session.state(), "complete");
  ASSERT_GT(session.totals().detail_records, 0u);
  const std::string name = name_of(session.directory());
  const auto before = files_of(session.directory());
  const std::string stem = name.substr(0, name.find('/')), pid = name.substr(name.find('/'));

  const Ending there = convert(collector, name, 1);
  ASSERT_TRUE(there.exited_with(0)) << there.output << there.errors;
  EXPECT_EQ(there.output.find(stem + "_atf1" + pid + ": ATF version 1, "), 0u) << there.output;
  const std::string one = collector.root() + "/" + stem + "_atf1" + pid;
  EXPECT_EQ(bytes_of(one + "/thread_0/index.atf")[5], 1);
  expect_reference_ok(scratch_.path(), one);
  const Ending back = collector.ctl({"--json", "convert", "--at-collector", stem + "_atf1" + pid,
                                     "--atf-version", "2", "--strict"},
                                    seconds(120));
  ASSERT_TRUE(back.exited_with(0)) << back.output << back.errors;
  const json end = json::parse(back.output);
  EXPECT_EQ(end["session"]["name"], "sessions/" + stem + "_atf2" + pid);
  EXPECT_EQ(end["session"]["state"], "complete");
  EXPECT_TRUE(end["missing"].empty() && end["left_out"].empty()) << end;
  const std::string two = collector.root() + "/" + stem + "_atf2" + pid;
  expect_reference_ok(scratch_.path(), two);

  // The first was only read; the third has its records, every byte of them.
  EXPECT_TRUE(files_of(session.directory()) == before);  // too large to be printed
  size_t compared = 0;
  for (const auto& [path, bytes] : before) {
    if (!path.ends_with(".atf")) continue;
    ++compared;
    EXPECT_TRUE(bytes == bytes_of(two + "/" + path)) << path;
  }
  EXPECT_GE(compared, 4u);
  const RecordedSession first(session.directory()), other(one), third(two);
  for (const char* key : {"gaps", "modules", "symbols", "totals", "state", "stalls",
                          "detail_windows", "clock_sync", "markers"}) {
    EXPECT_EQ(first.manifest().value(key, json()), third.manifest().value(key, json())) << key;
  }
  EXPECT_EQ(threads_of(first), threads_of(third));
  ASSERT_NO_FATAL_FAILURE(expect_same_events(first, other));

  // It is a session like others: shown, verified, fetched, removed; the first comes first.
  EXPECT_EQ(session_of(collector, stem + "_atf1" + pid)["state"], "complete");
  const Ending newest = collector.ctl({"--json", "inspect", "--at-collector", "--files"});
  EXPECT_EQ(json::parse(newest.output)["session"], "sessions/" + name);
  for (const std::string& directory : {one, two}) {
    const Ending verified = collector.ctl({"verify", directory});
    EXPECT_TRUE(verified.exited_with(0)) << verified.output << verified.errors;
  }
  const Ending fetched =
      collector.ctl({"download", stem + "_atf1" + pid, "-o", scratch_ / "fetched"});
  EXPECT_TRUE(fetched.exited_with(0)) << fetched.errors;
  EXPECT_TRUE(bytes_of(one + "/thread_0/index.atf") ==
              bytes_of(scratch_ / "fetched/thread_0/index.atf"));
  // What there is of it is known to the next start too.
  collector.stop();
  collector.start_again();
  EXPECT_EQ(session_of(collector, stem + "_atf1" + pid)["state"], "complete");
  for (const char* version : {"_atf1", "_atf2"}) {
    const Ending removed = collector.ctl({"delete", stem + version + pid});
    EXPECT_TRUE(removed.exited_with(0)) << removed.errors;
  }
  EXPECT_EQ(names_in(collector.root()), std::vector<std::string>{stem});
  EXPECT_TRUE(files_of(session.directory()) == before);  // too large to be printed
}

TEST_F(ConvertSessionTest, EachRefusalSaysWhy) {
  CollectorProcess collector(scratch_);
  const RecordedSession session = record_small(collector);
  const std::string name = name_of(session.directory());
  const std::string stem = name.substr(0, name.find('/')), pid = name.substr(name.find('/'));
  const auto refused = [&](const std::string& which, int version, const std::string& why) {
    const Ending ending = convert(collector, which, version);
    EXPECT_TRUE(ending.exited_with(1)) << ending.describe() << ending.output;
    EXPECT_NE(ending.errors.find(why), std::string::npos) << ending.errors;
  };
  refused("session_20000101_000000/pid_1", 1, "no session \"session_20000101_000000/pid_1\"");
  refused("../../etc", 1, "no session");
  refused(name, 2, "has ATF version 2 already");
  EXPECT_TRUE(convert(collector, name, 3).exited_with(2));  // collectctl's own check
  ASSERT_TRUE(convert(collector, name, 1).exited_with(0));
  refused(name, 1, stem + "_atf1" + pid + " is there already");

  RawAgent agent(collector.ingest_port(), 4'200'001);
  ASSERT_TRUE(agent.ready);
  ASSERT_TRUE(eventually(
      seconds(30), [&] { return !session_directories(collector.root(), 4'200'001).empty(); }));
  refused(name_of(session_directories(collector.root(), 4'200'001)[0]), 1,
          "is not sealed yet; StopSession seals it");
}

TEST_F(ConvertSessionTest, ReportsAndCountsMissingInput) {
  CollectorProcess collector(scratch_);
  const RecordedSession session = record_small(collector);
  const std::string index = session.directory() + "/thread_1/index.atf";
  fs::resize_file(index, 64 + 3 * 32 + 5);
  const Ending ending = convert(collector, name_of(session.directory()), 1);
  EXPECT_TRUE(ending.exited_with(1)) << ending.output;
  EXPECT_NE(ending.errors.find("missing: thread_1/index.atf: it has no footer"), std::string::npos)
      << ending.errors;
  const auto made = session_directories(collector.root());
  ASSERT_EQ(made.size(), 2u);
  const RecordedSession converted(made[1]);
  EXPECT_EQ(converted.state(), "recovered");
  EXPECT_GE(converted.manifest()["input_missing"].size(), 2u);
}

// kill -9 in the middle; and once more while the next conversion of the same session runs.
TEST_F(ConvertSessionTest, KilledDaemonLeavesNothingHalfMade) {
  CollectorProcess collector(scratch_);
  const RecordedSession session = record_large(collector);
  const std::string name = name_of(session.directory());
  const auto before = files_of(session.directory());
  const std::string stem = name.substr(0, name.find('/'));
  const std::string half = collector.root() + "/.converting";
  int killed_in_the_middle = 0;
  for (int round = 0; round < 20 && killed_in_the_middle < 3; ++round) {
    ChildProcess client(scratch_.path(), {program("collectctl"), "--control", collector.control(),
                                          "convert", "--at-collector", name, "--atf-version", "1"});
    ASSERT_TRUE(eventually(seconds(60), [&] { return fs::exists(half) || !client.running(); }));
    collector.process().send_signal(SIGKILL);
    collector.process().wait(seconds(10));
    client.wait(seconds(30));
    killed_in_the_middle += fs::exists(half);
    collector.start_again();
    EXPECT_TRUE(eventually(seconds(30), [&] { return !fs::exists(half); }));
    EXPECT_TRUE(files_of(session.directory()) == before);  // too large to be printed
    const auto names = names_in(collector.root());
    if (names.size() == 2) {  // it was done before the signal came: then it is whole
      EXPECT_EQ(names[1], stem + "_atf1");
      const Ending verified = collector.ctl(
          {"verify", collector.root() + "/" + names[1] + name.substr(name.find('/'))});
      EXPECT_TRUE(verified.exited_with(0)) << verified.output;
      fs::remove_all(collector.root() + "/" + names[1]);
    } else {
      EXPECT_EQ(names, std::vector<std::string>{stem});
    }
  }
  EXPECT_GE(killed_in_the_middle, 1);
  // And it goes as if nothing had been.
  EXPECT_TRUE(eventually(seconds(30), [&] { return convert(collector, name, 1).exited_with(0); }));
}

TEST_F(ConvertSessionTest, ClientThatGoesAwayEndsItsConversion) {
  CollectorProcess collector(scratch_);
  const RecordedSession session = record_large(collector);
  const std::string name = name_of(session.directory());
  const std::string half = collector.root() + "/.converting";
  int cancelled = 0;
  for (int round = 0; round < 20 && cancelled == 0; ++round) {
    ChildProcess client(scratch_.path(), {program("collectctl"), "--control", collector.control(),
                                          "convert", "--at-collector", name, "--atf-version", "1"});
    ASSERT_TRUE(eventually(seconds(60), [&] { return fs::exists(half) || !client.running(); }));
    // While it is read, a session is not removed.
    const Ending kept = collector.ctl({"delete", name});
    if (fs::exists(half)) {
      EXPECT_TRUE(kept.exited_with(1)) << kept.output;
      EXPECT_NE(kept.errors.find("is being converted right now"), std::string::npos) << kept.errors;
    }
    ASSERT_FALSE(kept.exited_with(0)) << "it was too fast for this test";
    client.send_signal(SIGINT);
    client.wait(seconds(30));
    EXPECT_TRUE(eventually(seconds(30), [&] { return !fs::exists(half); }));
    const auto names = names_in(collector.root());
    cancelled += names.size() == 1;
    if (names.size() > 1) fs::remove_all(collector.root() + "/" + names[1]);
  }
  EXPECT_EQ(cancelled, 1);
}

TEST_F(ConvertSessionTest, RespectsDiskAndSizeLimits) {
  {
    CollectorProcess collector(scratch_);
    record_small(collector);
  }
  // More than any disk has is to stay free from now on: what is there can be read, and no more.
  CollectorProcess collector(scratch_, {"--keep-free-bytes", "1000000000000000000"});
  const std::string name = name_of(session_directories(collector.root())[0]);
  session_of(collector, name);
  const Ending full = convert(collector, name, 1);
  EXPECT_TRUE(full.exited_with(1)) << full.output;
  EXPECT_NE(full.errors.find("keep_free_bytes reached"), std::string::npos) << full.errors;
  EXPECT_EQ(names_in(collector.root()).size(), 1u);
  collector.stop();

  CollectorProcess capped(scratch_, {"--max-session-bytes", "1000"});
  session_of(capped, name);
  const Ending large = convert(capped, name, 1);
  EXPECT_TRUE(large.exited_with(1)) << large.output;
  EXPECT_NE(large.errors.find("max_session_bytes reached"), std::string::npos) << large.errors;
  EXPECT_EQ(names_in(capped.root()).size(), 1u);
}

}  // namespace
}  // namespace collect::e2e
