// The arm64 agent, run by qemu, against the daemon of this machine: with glibc, preloaded, and
// within a static musl program that listens as it would on a phone. Built by the tests
// agent_arm64_build and agent_arm64_musl_build; without compiler or emulator everything here is
// skipped.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/e2e/collector_process.h"
#include "tests/e2e/recorded_session.h"

namespace collect::e2e {
namespace {

namespace fs = std::filesystem;

constexpr seconds kLimit{60};
constexpr int kExitCode = 7;  // the program's own
constexpr uint8_t kArm64 = 2;
constexpr uint8_t kLinux = 4;
constexpr uint8_t kBoottime = 3;
constexpr uint16_t kLrFpSpValid = 0x700;
constexpr size_t kFileHeader = 64;
constexpr size_t kFileFooter = 64;
constexpr size_t kRecordHeader = 24;

std::string cross(const std::string& path) {
  return std::string(E2E_CROSS) + "/" + path;
}

// Null or why a program of this build can't run.
std::string missing(const std::string& built) {
  for (const std::string& needed : {std::string("/usr/bin/qemu-aarch64-static"), built}) {
    if (!fs::exists(needed)) return "there is no " + needed;
  }
  return "";
}

// What tests/agent/cross/counted.c says of itself.
struct OwnWords {
  std::map<uint32_t, uint64_t> calls;  // by thread id
  uint64_t function = 0;
  uint64_t return_address = 0;
  uint64_t frame_pointer = 0;
  uint64_t stack_pointer = 0;
};

OwnWords read_words(const std::string& output) {
  OwnWords words;
  std::istringstream lines(output);
  for (std::string word; lines >> word;) {
    if (word == "thread") {
      uint32_t id = 0;
      lines >> id;
      lines >> words.calls[id];
    } else if (word == "frame") {
      lines >> std::hex >> words.function >> words.return_address >> words.frame_pointer >>
          words.stack_pointer >> std::dec;
    }
  }
  return words;
}

template <class T>
T at(const std::string& bytes, size_t offset) {
  T value{};
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void expect_counted(const RecordedSession& session, const OwnWords& words) {
  EXPECT_EQ(words.calls.size(), 5u);
  uint64_t calls = 0;
  std::map<uint32_t, uint64_t> recorded;
  for (const CountedThread& thread : session.count_threads()) {
    EXPECT_EQ(thread.calls, thread.returns);
    recorded[thread.thread_id] = thread.calls;
  }
  for (const auto& [id, own] : words.calls) calls += own;
  EXPECT_EQ(recorded, words.calls);
  EXPECT_GT(calls, 30000u);
  const SessionTotals totals = session.totals();
  EXPECT_EQ(totals.events, 2 * calls);
  EXPECT_EQ(totals.detail_records, 2 * calls);
  EXPECT_EQ(totals.lost, 0u);
  EXPECT_EQ(session.manifest()["process"]["arch"], kArm64);
  EXPECT_EQ(session.manifest()["process"]["os"], kLinux);
  for (const auto& entry : fs::recursive_directory_iterator(session.directory())) {
    if (entry.path().filename() != "index.atf") continue;
    const std::string header = bytes_of(entry.path()).substr(0, kFileHeader);
    EXPECT_EQ(header[6], kArm64) << entry.path();
    EXPECT_EQ(header[7], kLinux) << entry.path();
    EXPECT_EQ(header[16], kBoottime) << entry.path();
  }
}

// The one call of known_frame and its return: what the agent says of the frame is what the function
// itself saw.
void expect_known_frame(const RecordedSession& session, const OwnWords& words) {
  std::vector<uint16_t> kinds;
  for (const auto& entry : fs::recursive_directory_iterator(session.directory())) {
    if (entry.path().filename() != "detail.atf") continue;
    const std::string bytes = bytes_of(entry.path());
    ASSERT_GT(bytes.size(), kFileHeader + kFileFooter);
    size_t record = kFileHeader;
    while (record < bytes.size() - kFileFooter) {
      const auto total = at<uint32_t>(bytes, record);
      ASSERT_GE(total, kRecordHeader + 100u);
      ASSERT_EQ(at<uint16_t>(bytes, record + 6), kLrFpSpValid) << "no argument register is known";
      const size_t payload = record + kRecordHeader;
      for (size_t i = 0; i < 8; ++i) ASSERT_EQ(at<uint64_t>(bytes, payload + 8 + 8 * i), 0u);
      const auto stack_bytes = at<uint16_t>(bytes, payload + 96);
      ASSERT_EQ(total, kRecordHeader + 100u + stack_bytes);
      ASSERT_GT(stack_bytes, 0u);
      const auto stack_pointer = at<uint64_t>(bytes, payload + 88);
      ASSERT_EQ(stack_pointer % 16, 0u);
      if (at<uint64_t>(bytes, payload + 72) == words.return_address) {
        kinds.push_back(at<uint16_t>(bytes, record + 4));
        EXPECT_EQ(at<uint64_t>(bytes, payload + 80), words.frame_pointer);
        EXPECT_EQ(stack_pointer, words.stack_pointer);
        const uint64_t symbol = at<uint64_t>(bytes, payload) & 0xFFFFFFFFu;
        EXPECT_EQ((words.function - symbol) % 4096, 0u) << "its address minus a load bias";
        // The frame record is on the stack that was copied, or above it.
        if (words.frame_pointer - stack_pointer + 16 <= stack_bytes) {
          const size_t frame_record = payload + 100 + (words.frame_pointer - stack_pointer);
          EXPECT_EQ(at<uint64_t>(bytes, frame_record + 8), words.return_address);
        }
      }
      record += total;
    }
  }
  EXPECT_EQ(kinds.size(), 2u) << "a call and a return";
}

void expect_whole(const CollectorProcess& collector, const Scratch& scratch, int pid,
                  const Ending& ending) {
  ASSERT_TRUE(ending.exited_with(kExitCode)) << ending.describe() << ending.errors;
  const OwnWords words = read_words(ending.output);
  const std::vector<RecordedSession> sessions = sealed_sessions(collector.root(), pid);
  ASSERT_EQ(sessions.size(), 1u);
  EXPECT_EQ(sessions[0].state(), "complete");
  expect_counted(sessions[0], words);
  expect_known_frame(sessions[0], words);
  const Ending verified =
      run(scratch.path(), {program("collectctl"), "verify", sessions[0].directory()});
  EXPECT_TRUE(verified.exited_with(0)) << verified.output << verified.errors;
  const Ending dumped = run(scratch.path(), {program("collectctl"), "dump", "--function",
                                             "known_frame", sessions[0].directory()});
  EXPECT_NE(dumped.output.find("known_frame"), std::string::npos)
      << "the daemon reads the symbols of a foreign architecture\n"
      << dumped.output << dumped.errors;
}

Environment with_detail(Environment environment) {
  environment["COLLECT_DETAIL"] = "on";
  environment["COLLECT_FULL"] = "wait";
  environment["LD_PRELOAD"] = "";
  return environment;
}

TEST(Arm64Agent, PreloadedIntoAProgramOfGlibc) {
  const std::string built = cross("arm64/bin/counted");
  if (const std::string why = missing(built); !why.empty()) GTEST_SKIP() << "skipped: " << why;
  Scratch scratch;
  CollectorProcess collector(scratch);
  ChildProcess job(scratch.path(),
                   {"qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu", "-E",
                    "LD_PRELOAD=" + cross("arm64/lib/libcollect_agent.so"), built},
                   with_detail(collector.tracing()));
  expect_whole(collector, scratch, job.pid(), job.wait(kLimit));
}

TEST(Arm64Agent, LinkedIntoAProgramOfGlibc) {
  const std::string built = cross("arm64/bin/counted_linked");
  if (const std::string why = missing(built); !why.empty()) GTEST_SKIP() << "skipped: " << why;
  Scratch scratch;
  CollectorProcess collector(scratch);
  ChildProcess job(scratch.path(), {"qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu", built},
                   with_detail(collector.tracing()));
  expect_whole(collector, scratch, job.pid(), job.wait(kLimit));
}

TEST(Arm64Agent, StaticMuslProgramThatListensLikeOnAPhone) {
  const std::string built = cross("arm64-musl/bin/counted_linked");
  if (const std::string why = missing(built); !why.empty()) GTEST_SKIP() << "skipped: " << why;
  Scratch scratch;
  CollectorProcess collector(scratch);
  const std::string go_on = scratch / "go-on";
  ChildProcess job(scratch.path(), {"qemu-aarch64-static", built, go_on},
                   with_detail({{"COLLECT_LISTEN", "abstract:"}}));
  // Its own name, which it was not given.
  const Ending attached =
      collector.ctl({"attach", "abstract:collect_agent_" + std::to_string(job.pid())});
  EXPECT_TRUE(attached.exited_with(0)) << attached.output << attached.errors;
  write_text_file(go_on, "");
  expect_whole(collector, scratch, job.pid(), job.wait(kLimit));
}

TEST(Arm64Agent, StaticMuslProgramThatConnects) {
  const std::string built = cross("arm64-musl/bin/counted_linked");
  if (const std::string why = missing(built); !why.empty()) GTEST_SKIP() << "skipped: " << why;
  Scratch scratch;
  CollectorProcess collector(scratch);
  ChildProcess job(scratch.path(), {"qemu-aarch64-static", built},
                   with_detail(collector.tracing()));
  expect_whole(collector, scratch, job.pid(), job.wait(kLimit));
}

// Sleds of clang's -fxray-instrument: what functions got in their registers, and what came
// out.
TEST(Arm64Agent, XRaySledsKeepArgumentsAndResults) {
  const std::string built = cross("arm64/bin/xray_plain");
  if (const std::string why = missing(built); !why.empty()) GTEST_SKIP() << "skipped: " << why;
  Scratch scratch;
  CollectorProcess collector(scratch);
  const Arguments emulator{"qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu"};
  const auto command = [&](const Arguments& more) {
    Arguments all = emulator;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const Ending untraced = run(scratch.path(), command({built, "registers"}));
  ASSERT_TRUE(untraced.exited_with(0)) << untraced.errors;
  ChildProcess job(
      scratch.path(),
      command({"-E", "LD_PRELOAD=" + cross("arm64/lib/libcollect_agent.so"), built, "registers"}),
      with_detail(collector.tracing()));
  const Ending& ending = job.wait(kLimit);
  ASSERT_TRUE(ending.exited_with(0)) << ending.describe() << ending.errors;
  EXPECT_EQ(ending.output, untraced.output);
  const std::vector<RecordedSession> sessions = sealed_sessions(collector.root(), job.pid());
  ASSERT_EQ(sessions.size(), 1u);
  const Ending dumped = collector.ctl({"dump", "--json", "--detail", sessions[0].directory()});
  std::map<std::string, nlohmann::json> registers;  // "eight_words call"
  std::istringstream lines(dumped.output);
  for (std::string line; std::getline(lines, line);) {
    const auto event = nlohmann::json::parse(line);
    registers[event["name"].get<std::string>() + " " + event["kind"].get<std::string>()] =
        event["detail"]["registers"];
  }
  for (int i = 0; i < 8; ++i) {
    std::ostringstream word;
    word << "0x" << std::hex << 0x1111 * (i + 1);
    EXPECT_EQ(registers["eight_words call"]["x" + std::to_string(i)], word.str());
  }
  EXPECT_EQ(registers["eight_words return"]["x0"], "0xd998c");
  EXPECT_EQ(registers["two_words return"]["x0"], "0xfedcba9876543210");
  EXPECT_FALSE(registers["tail_caller return"].contains("x0")) << "its result is another's";
  EXPECT_EQ(registers["tail_target return"]["x0"], "0x1111");
  const Ending verified = collector.ctl({"verify", sessions[0].directory()});
  EXPECT_TRUE(verified.exited_with(0)) << verified.output << verified.errors;
}

// deploy/android/example, for arm64 Linux in place of Android: a library that is loaded late and
// starts the agent by its API.
TEST(Arm64Agent, AppWhoseLibraryStartsItWhenItIsLoaded) {
  const std::string built = cross("arm64/bin/app_host");
  if (const std::string why = missing(built); !why.empty()) GTEST_SKIP() << "skipped: " << why;
  Scratch scratch;
  CollectorProcess collector(scratch);
  const std::string go_on = scratch / "go-on";
  ChildProcess job(scratch.path(), {"qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu", built,
                                    cross("android-example/libapp.so"), go_on});
  const Ending attached =
      collector.ctl({"attach", "abstract:collect_agent_" + std::to_string(job.pid())});
  EXPECT_TRUE(attached.exited_with(0)) << attached.output << attached.errors;
  write_text_file(go_on, "");
  const Ending& ending = job.wait(kLimit);
  ASSERT_TRUE(ending.exited_with(kExitCode)) << ending.describe() << ending.errors;
  EXPECT_EQ(ending.output, "55\n");
  const std::vector<RecordedSession> sessions = sealed_sessions(collector.root(), job.pid());
  ASSERT_EQ(sessions.size(), 1u);
  // fibonacci(n) takes 2 * fibonacci(n + 1) - 1 calls; one more is example_work.
  constexpr uint64_t kCalls = 2 * 89 - 1 + 1;
  EXPECT_EQ(sessions[0].totals().events, 2 * kCalls);
  EXPECT_EQ(sessions[0].totals().lost, 0u);
}

// deploy/android/wrap.sh, by this machine's shell and with this machine's agent.
TEST(AndroidWrap, PreloadsTheAgentBesideIt) {
  Scratch scratch;
  CollectorProcess collector(scratch);
  const std::string folder = scratch / "lib";
  fs::create_directory(folder);
  fs::copy_file(deploy_script("android/wrap.sh"), folder + "/wrap.sh");
  fs::copy_file(agent_library(), folder + "/libcollect_agent.so");
  ChildProcess job(
      scratch.path(),
      {"sh", folder + "/wrap.sh", traced_program("json_iso_codes_counted"), "1", "2", "300"},
      {{"COUNT_FILE", scratch / "count"}, {"COLLECT_FULL", "wait"}});
  const Ending attached =
      collector.ctl({"attach", "abstract:collect_agent_" + std::to_string(job.pid())});
  EXPECT_TRUE(attached.exited_with(0)) << attached.output << attached.errors;
  ASSERT_TRUE(job.wait(seconds(120)).exited_with(0));
  const std::vector<RecordedSession> sessions = sealed_sessions(collector.root(), job.pid());
  ASSERT_EQ(sessions.size(), 1u);
  expect_exactly(sessions[0], read_count(scratch / "count", job.pid()));
}

}  // namespace
}  // namespace collect::e2e
