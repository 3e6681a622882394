// What a run knows of its processes, from files written by hand with the offsets of
// formats/core/run_file.h, as any process of the run may write them.
#include "daemon/ctl/record/summary/run_processes.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>

#include "tests/child/forked_child.h"

namespace collect::ctl {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint32_t kForked = 2, kLoaded = 3;
constexpr uint32_t kRecorded = 1, kConnected = 2, kEnded = 4, kFailed = 8, kOutlives = 16,
                   kLinked = 32;

uint64_t now_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000 + static_cast<uint64_t>(now.tv_nsec) / 1'000'000;
}

class RunProcessesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = RunProcesses::make();
    ASSERT_TRUE(made.ok()) << to_string(made.error());
    run_ = std::move(*made);
    // A number that no one has.
    child::ForkedChild ended([] { return 0; });
    ended.wait();
    gone_ = ended.pid();
    struct stat found{};
    ASSERT_EQ(::stat("/proc/self/ns/pid", &found), 0);
    namespace_ = found.st_ino;
    bytes_.assign(65536, '\0');
    put<uint32_t>(0, 0x31524C43);
  }

  template <class T>
  void put(size_t offset, T value) {
    std::memcpy(bytes_.data() + offset, &value, sizeof value);
  }
  struct Said {
    uint32_t state = kLoaded;
    uint32_t flags = 0;
    uint32_t pid = 0;
    std::string program = "/bin/f";
    std::string reason = "";
    uint64_t age_ms = 60'000;
    uint64_t silent_ms = 0;
    uint64_t in_namespace = 0;  // 0: ours
  };
  void say(size_t slot, const Said& said) {
    const size_t at = 512 + 512 * slot;
    put(at, said.state);
    put(at + 4, said.flags);
    put(at + 8, said.pid);
    put<uint32_t>(at + 12, 65534);
    put<uint64_t>(at + 16, said.in_namespace == 0 ? namespace_ : said.in_namespace);
    put<uint64_t>(at + 24, now_ms() - said.age_ms);
    put<uint64_t>(at + 32, now_ms() - said.silent_ms);
    bytes_.replace(at + 40, said.program.size(), said.program);
    bytes_.replace(at + 160, said.reason.size(), said.reason);
  }
  void write(const std::string& name = "one") {
    std::ofstream(run_->directory() + "/" + name, std::ios::binary) << bytes_;
    run_->look();
  }
  bool is_there(const std::string& name = "one") {
    return fs::exists(run_->directory() + "/" + name);
  }
  static control::v1::Session session_of(pid_t pid) {
    control::v1::Session session;
    session.set_pid(static_cast<uint32_t>(pid));
    return session;
  }
  uint32_t gone() const { return static_cast<uint32_t>(gone_); }
  static uint32_t alive() { return static_cast<uint32_t>(::getpid()); }

  std::unique_ptr<RunProcesses> run_;
  std::string bytes_;
  pid_t gone_ = 0;
  uint64_t namespace_ = 0;
};

TEST_F(RunProcessesTest, OthersMayDropInAndListNothing) {
  const fs::path records = run_->directory();
  EXPECT_EQ(fs::status(records).permissions(), fs::perms(01733));
  EXPECT_EQ(fs::status(records.parent_path()).permissions(), fs::perms(0711));
  EXPECT_EQ(fs::status(run_->key_file()).permissions(), fs::perms(0600));
  EXPECT_GE(records.filename().string().size(), 32u);
  std::string key;
  std::getline(std::ifstream(run_->key_file()), key);
  EXPECT_EQ(key, run_->key());
  EXPECT_EQ(key.size(), 64u);
  run_.reset();
  EXPECT_FALSE(fs::exists(records.parent_path()));
}

TEST_F(RunProcessesTest, WhatAKilledRunLeftIsRemoved) {
  const std::string ours = fs::path(run_->directory()).parent_path();
  std::string left = ours.substr(0, ours.rfind('-')) + "-XXXXXX";
  ASSERT_NE(::mkdtemp(left.data()), nullptr);
  std::ofstream(left + "/key") << "k";
  const auto next = RunProcesses::make();
  ASSERT_TRUE(next.ok());
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(ours)) << "its run continues";
}

TEST_F(RunProcessesTest, RecordingWithoutASessionIsMissing) {
  say(0, {.flags = kRecorded | kEnded, .pid = gone(), .reason = "refused by the collector: no"});
  say(1, {.flags = kRecorded, .pid = gone(), .program = "/bin/g", .reason = "starting"});
  say(2, {.flags = kFailed | kEnded, .pid = gone(), .program = "/bin/h", .reason = "no memory"});
  say(3, {.flags = kEnded, .pid = gone(), .program = "/bin/quiet"});
  write();
  const auto missing = run_->missing({});
  ASSERT_THAT(missing, SizeIs(3));
  EXPECT_EQ(missing[0].pid, gone());
  EXPECT_EQ(missing[0].uid, 65534u);
  EXPECT_EQ(missing[0].program, "/bin/f");
  EXPECT_EQ(missing[0].reason, "refused by the collector: no");
  EXPECT_EQ(missing[1].reason, "it ended before its agent reached the collector");
  EXPECT_EQ(missing[2].reason, "no memory");
  ASSERT_THAT(run_->quiet(), SizeIs(1));
  EXPECT_EQ(run_->quiet()[0].program, "/bin/quiet");
  EXPECT_FALSE(is_there()) << "no one has anything to say in it any more";
  run_->look();
  EXPECT_THAT(run_->missing({}), SizeIs(3)) << "and what it said is kept";
}

TEST_F(RunProcessesTest, EachSessionAccountsForOneProcess) {
  say(0, {.flags = kRecorded | kConnected, .pid = gone()});
  say(1, {.flags = kRecorded | kConnected, .pid = gone(), .reason = "connected"});
  say(2, {.flags = kRecorded | kConnected | kEnded, .pid = gone()});
  write();
  EXPECT_THAT(run_->missing({session_of(gone_), session_of(gone_), session_of(1)}), SizeIs(0));
  ASSERT_THAT(run_->missing({}), SizeIs(2)) << "one that ended in order had nothing to tell";
  EXPECT_EQ(run_->missing({})[1].reason, "the collector has no session of it (connected)");
}

TEST_F(RunProcessesTest, WaitsForThoseThatStillShip) {
  const auto ships = [&](const Said& said, bool while_alive = true) {
    say(0, said);
    write();
    return run_->any_ships(while_alive);
  };
  EXPECT_TRUE(ships({.flags = kRecorded, .pid = alive()}));
  EXPECT_FALSE(ships({.flags = kRecorded, .pid = alive()}, false));
  EXPECT_FALSE(ships({.flags = kRecorded | kLinked, .pid = alive()})) << "the collector shows it";
  EXPECT_FALSE(ships({.flags = kRecorded, .pid = alive(), .silent_ms = 60'000}));
  EXPECT_FALSE(ships({.flags = kRecorded | kEnded, .pid = alive()}));
  EXPECT_FALSE(ships({.flags = kRecorded, .pid = gone()})) << "its drain was a thread of it";
  EXPECT_TRUE(ships({.flags = kRecorded | kOutlives, .pid = gone()}, false));
  EXPECT_FALSE(ships({.flags = kRecorded | kOutlives, .pid = gone(), .silent_ms = 60'000}));
  // One that has recorded nothing yet.
  EXPECT_FALSE(ships({.state = kForked, .pid = alive()}));
  EXPECT_TRUE(ships({.state = kForked, .pid = alive(), .age_ms = 0}));
  EXPECT_FALSE(ships({.state = kForked, .pid = gone(), .age_ms = 0}));
  // Elsewhere the number is someone else's.
  EXPECT_TRUE(ships({.flags = kRecorded, .pid = 1, .in_namespace = 7}));
  EXPECT_FALSE(ships({.flags = kRecorded, .pid = 1, .silent_ms = 60'000, .in_namespace = 7}));
  EXPECT_FALSE(run_->lives(1));
  EXPECT_TRUE(run_->lives(::getppid())) << "nothing is said of it, but it is there";
}

TEST_F(RunProcessesTest, ProgramIsWhatItBecame) {
  run_->set_program(::getpid());
  say(0, {.flags = kEnded, .pid = alive(), .program = "/bin/sh", .age_ms = 2'000});
  say(1, {.flags = kEnded, .pid = alive(), .program = "/bin/python", .age_ms = 1'000});
  write();
  bool recorded = true;
  EXPECT_EQ(run_->last_program(recorded), "/bin/python");
  EXPECT_FALSE(recorded);
}

TEST_F(RunProcessesTest, EndIsWrittenToThoseThatRun) {
  say(0, {.flags = kRecorded, .pid = alive()});
  write();
  run_->end_run();
  std::string read;
  std::ifstream file(run_->directory() + "/one", std::ios::binary);
  read.assign(std::istreambuf_iterator<char>(file), {});
  ASSERT_EQ(read.size(), 65536u);
  EXPECT_EQ(read.substr(4, 4), std::string("\1\0\0\0", 4));
  EXPECT_EQ(read.substr(8), bytes_.substr(8));
}

TEST_F(RunProcessesTest, ChildrenWithoutARecordAreCounted) {
  say(0, {.flags = kRecorded | kLinked, .pid = alive()});
  put<uint32_t>(8, 5);
  write();
  write();
  EXPECT_EQ(run_->left_out(), 5u);
  say(0, {.flags = kEnded, .pid = gone()});
  write();
  EXPECT_FALSE(is_there());
  EXPECT_EQ(run_->left_out(), 5u);
  run_->look();
  EXPECT_EQ(run_->left_out(), 5u);
}

// A program that makes its file has no record at first, and then one that is not filled yet.
TEST_F(RunProcessesTest, FreshFileIsLeftAlone) {
  write();
  EXPECT_TRUE(is_there());
  say(0, {.state = 1, .pid = gone()});
  write();
  EXPECT_TRUE(is_there());
}

// Any process that knows the name of the folder may put files there.
TEST_F(RunProcessesTest, BelievesNoFile) {
  const std::string folder = run_->directory() + "/";
  std::ofstream(folder + "empty");
  std::ofstream(folder + "short", std::ios::binary) << bytes_.substr(0, 1000);
  ASSERT_EQ(::mkfifo((folder + "pipe").c_str(), 0666), 0);
  ASSERT_EQ(::symlink("/etc/passwd", (folder + "link").c_str()), 0);
  ASSERT_TRUE(fs::create_directory(folder + "directory"));
  put<uint32_t>(0, 1);
  write("of another kind");
  EXPECT_THAT(run_->missing({}), IsEmpty());
  // Every byte of a record, with no end of its texts.
  put<uint32_t>(0, 0x31524C43);
  say(0, {.flags = kRecorded | kEnded, .pid = gone()});
  bytes_.replace(512 + 40, 472, std::string(472, 'x'));
  write();
  ASSERT_THAT(run_->missing({}), SizeIs(1));
  EXPECT_EQ(run_->missing({})[0].program, std::string(119, 'x'));
  EXPECT_EQ(run_->missing({})[0].reason, std::string(351, 'x'));
  for (size_t at = 0; at < 48; ++at) {
    bytes_[512 + at] = '\xff';
    write();
  }
}

}  // namespace
}  // namespace collect::ctl
