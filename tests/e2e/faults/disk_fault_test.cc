// Disks that fill up, are read-only or go away under a real collectord: the session that is hit
// ends as failed with a reason, what it has is readable, and the daemon continues.
#include <gtest/gtest.h>
#include <sys/mount.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "storage/fs/posix_fs.h"
#include "tests/e2e/collector_process.h"
#include "tests/e2e/raw_agent.h"
#include "tests/e2e/recorded_session.h"
#include "tests/storage/found_states.h"

namespace collect::e2e {
namespace {

namespace filesystem = std::filesystem;

constexpr uint32_t kPid = 4'200'000;  // above the largest that Linux gives out
constexpr uint32_t kEventsPerPage = 2048;
constexpr uint64_t kMemoryLimitKb = 512 * 1024;

// A file system in memory of a size of its own; needs the right to mount.
class SmallDisk {
 public:
  // Room for so many files too, where a number is given.
  SmallDisk(const std::string& path, const std::string& size, uint64_t files = 0) : path_(path) {
    filesystem::create_directories(path);
    std::string options = "size=" + size;
    if (files != 0) options += ",nr_inodes=" + std::to_string(files);
    mounted_ = ::mount("tmpfs", path.c_str(), "tmpfs", 0, options.c_str()) == 0;
    if (!mounted_) problem_ = std::strerror(errno);
  }
  ~SmallDisk() {
    if (mounted_) ::umount2(path_.c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }
  const std::string& problem() const { return problem_; }
  bool make_read_only() {
    return ::mount(nullptr, path_.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) == 0;
  }

 private:
  const std::string path_;
  bool mounted_ = false;
  std::string problem_;
};

#define NEEDS(disk)                                                                  \
  do {                                                                               \
    if (!(disk).mounted()) GTEST_SKIP() << "can't mount here: " << (disk).problem(); \
  } while (false)

// Pages of stream 1 until the collector ends the connection, or `pages` of them.
uint64_t feed(RawAgent& agent, uint64_t pages) {
  for (uint64_t page = 0; page < pages; ++page) {
    const uint64_t first = page * kEventsPerPage;
    if (!agent.data.send(page_bytes(1, first, events(1000 + first, kEventsPerPage)))) return page;
  }
  return pages;
}

// The recording's end as an agent says it; true when the collector says that it is sealed.
bool finish(RawAgent& agent, uint64_t pages) {
  const uint64_t count = pages * kEventsPerPage;
  wire::StreamClose close;
  close.set_stream_id(1);
  close.set_end_ns(1000 + count);
  close.set_index_count(count);
  wire::RecordingEnd end;
  end.set_recording(1);
  end.set_end_ns(1000 + count);
  end.set_reason("exit");
  if (!agent.data.send(wire::FrameType::kStreamClose, close) ||
      !agent.data.send(wire::FrameType::kRecordingEnd, end)) {
    return false;
  }
  while (const std::optional<ReceivedFrame> frame = agent.control.receive()) {
    wire::Ack ack;
    if (frame->type == wire::FrameType::kAck && ack.ParseFromString(frame->body) &&
        ack.recording_ended() == 1) {
      agent.control.send(wire::FrameType::kBye, wire::Bye());
      return true;
    }
  }
  return false;
}

void expect_a_session_works(CollectorProcess& collector, uint32_t pid) {
  RawAgent agent(collector.ingest_port(), pid);
  ASSERT_TRUE(agent.ready) << collector.process().errors();
  ASSERT_EQ(feed(agent, 4), 4u);
  EXPECT_TRUE(finish(agent, 4)) << collector.process().errors();
  const auto sessions = sealed_sessions(collector.root(), static_cast<int>(pid));
  ASSERT_EQ(sessions.size(), 1u);
  EXPECT_EQ(sessions[0].state(), "complete");
  EXPECT_EQ(sessions[0].totals().events, 4u * kEventsPerPage);
}

// All who show the session say the same of it, in the same words.
void expect_one_health(CollectorProcess& collector, const RecordedSession& session,
                       const std::string& reason) {
  using nlohmann::json;
  const auto said_by = [&](const Arguments& command) {
    const Ending ending = collector.ctl(command);
    const json said = json::parse(ending.output, nullptr, false);
    EXPECT_TRUE(said.is_object()) << command[1] << ": " << ending.output << ending.errors;
    return said;
  };
  const std::string& directory = session.directory();
  EXPECT_TRUE(collector.ctl({"verify", directory}).exited_with(1));
  const json verified = said_by({"--json", "verify", directory});
  const std::string missing = verified.value("missing", "");
  EXPECT_EQ(missing.find("storing ended (" + reason), 0u) << missing;
  EXPECT_NE(missing.find("how much is not known"), std::string::npos) << missing;
  EXPECT_EQ(verified.value("result", ""), "failed");
  const json inspected = said_by({"--json", "inspect", directory});
  EXPECT_EQ(inspected["health"].value("missing", ""), missing);
  EXPECT_EQ(inspected["health"].value("state", ""), "failed");
  const json reported = said_by({"--json", "report", directory});
  EXPECT_EQ(reported.value("missing", ""), missing);
  EXPECT_EQ(reported.value("losses_known", true), false);
  const json listed = said_by({"--json", "sessions"});
  bool is_listed = false;
  for (const json& one : listed["sessions"]) {
    if (one.value("path", "") != directory) continue;
    is_listed = true;
    EXPECT_EQ(one.value("state", ""), "failed");
    EXPECT_EQ(one.value("missing", ""), missing);
    EXPECT_EQ(one.value("losses_known", false), false);
  }
  EXPECT_TRUE(is_listed) << directory << " in " << listed.dump();
}

// Sealed as failed for this reason, and every event that it counts is in the file.
void expect_failed(CollectorProcess& collector, uint32_t pid, const std::string& reason) {
  const auto sessions = sealed_sessions(collector.root(), static_cast<int>(pid));
  ASSERT_FALSE(sessions.empty());
  const RecordedSession& session = sessions.front();
  EXPECT_EQ(session.state(), "failed");
  EXPECT_NE(session.manifest().value("reason", std::string()).find(reason), std::string::npos)
      << session.manifest().value("reason", std::string());
  EXPECT_GT(session.totals().events, 0u);
  uint64_t in_files = 0;
  for (const CountedThread& thread : session.count_threads())
    in_files += thread.calls + thread.returns;
  EXPECT_EQ(in_files, session.totals().events);
  const Ending verified = collector.ctl({"verify", "--allow-incomplete", session.directory()});
  EXPECT_TRUE(verified.exited_with(0)) << verified.output << verified.errors;
  expect_one_health(collector, session, session.manifest().value("reason", std::string()));
  EXPECT_TRUE(collector.process().running());
}

uint64_t most_memory_kb(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::strtoull(line.c_str() + 6, nullptr, 10);
  }
  return UINT64_MAX;
}

// Threads without end, on a disk that has bytes enough: files stay free for those who come to an
// end.
TEST(DiskFaultTest, DiskThatRunsOutOfFiles) {
  constexpr uint64_t kFiles = 2'000;
  for (const uint64_t kept : {uint64_t{500}, uint64_t{100}}) {
    SCOPED_TRACE(kept);
    Scratch scratch;
    SmallDisk disk(scratch / "disk", "256m", kFiles);
    NEEDS(disk);
    CollectorProcess collector(scratch,
                               {"--rtc", "false", "--keep-free-files", std::to_string(kept)},
                               scratch / "disk/root");
    const auto free_files = [&] { return storage::PosixFs().space(collector.root())->free_files; };
    RawAgent innocent(collector.ingest_port(), kPid + 1);
    RawAgent flood(collector.ingest_port(), kPid);
    ASSERT_TRUE(innocent.ready && flood.ready);
    ASSERT_EQ(feed(innocent, 1), 1u);
    ASSERT_EQ(feed(flood, 1), 1u);
    ASSERT_TRUE(innocent.control.receive_ack(1, kEventsPerPage));
    for (uint32_t stream = 2; stream <= kFiles; ++stream) {
      if (!open_stream(flood.data, 1, stream)) break;
    }
    const auto refusal = flood.control.refusal();
    ASSERT_TRUE(refusal);
    EXPECT_EQ(refusal->code(), wire::REFUSE_STORAGE) << refusal->reason();
    EXPECT_NE(refusal->reason().find("keep_free_files reached"), std::string::npos)
        << refusal->reason();
    EXPECT_GE(free_files(), kept);
    const auto sessions = sealed_sessions(collector.root(), static_cast<int>(kPid));
    ASSERT_EQ(sessions.size(), 1u);
    EXPECT_EQ(sessions[0].state(), "failed");
    EXPECT_EQ(sessions[0].totals().events, kEventsPerPage);
    // A journal for each thread went with the seal, so there is room again; it is taken elsewhere.
    for (int at = 0; free_files() > kept; ++at) {
      std::ofstream(scratch / ("disk/" + std::to_string(at)));
    }
    RawAgent late(collector.ingest_port(), kPid + 2);
    const auto refused = late.control.refusal();
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->code(), wire::REFUSE_STORAGE) << refused->reason();
    EXPECT_TRUE(finish(innocent, 1)) << collector.process().errors();
    const auto whole = sealed_sessions(collector.root(), static_cast<int>(kPid + 1));
    ASSERT_EQ(whole.size(), 1u);
    EXPECT_EQ(whole[0].state(), "complete");
    EXPECT_EQ(whole[0].totals().events, kEventsPerPage);
  }
}

TEST(DiskFaultTest, FullDisk) {
  for (const bool keep_free : {true, false}) {
    Scratch scratch;
    SmallDisk disk(scratch / "disk", "48m");
    NEEDS(disk);
    const std::string filler = scratch / "disk/filler";
    std::ofstream(filler) << std::string(16 << 20, 'x');
    CollectorProcess collector(scratch,
                               {"--rtc", "false", "--keep-free-bytes", keep_free ? "8388608" : "0"},
                               scratch / "disk/root");
    {
      RawAgent agent(collector.ingest_port(), kPid);
      ASSERT_TRUE(agent.ready);
      EXPECT_LT(feed(agent, 4000), 4000u) << "250 MiB into 32";
    }
    expect_failed(collector, kPid, keep_free ? "keep_free_bytes reached" : "No space left");
    EXPECT_LT(most_memory_kb(collector.process().pid()), kMemoryLimitKb);
    if (keep_free) {
      const auto space = storage::PosixFs().space(collector.root());
      ASSERT_TRUE(space.ok());
      EXPECT_GE(space->free_bytes, 7u << 20) << "the mark, and what sealing took";
    }
    filesystem::remove(filler);  // space returns
    expect_a_session_works(collector, kPid + 1);
  }
}

// A program that ends well, and a recording that did not: that is no success, and not "nothing".
TEST(DiskFaultTest, RunSaysThatTheDiskWasFull) {
  Scratch scratch;
  SmallDisk disk(scratch / "disk", "32m");
  NEEDS(disk);
  const Ending ran = run(scratch.path(),
                         {program("collectctl"), "run", "-o", scratch / "disk/traces", "--",
                          traced_program("json_iso_codes_counted"), "1", "2"},
                         {}, seconds(120));
  EXPECT_TRUE(ran.exited_with(125)) << ran.describe() << ran.errors;
  EXPECT_NE(ran.errors.find("(failed)"), std::string::npos) << ran.errors;
  EXPECT_NE(ran.errors.find("storing ended (no space"), std::string::npos) << ran.errors;
  EXPECT_EQ(ran.errors.find("lost       nothing"), std::string::npos) << ran.errors;
  // What its agent still holds finds no room either: no one waits for it.
  EXPECT_NE(ran.errors.find("run does not wait for the rest: "), std::string::npos) << ran.errors;
  EXPECT_EQ(ran.errors.find("no progress for"), std::string::npos) << ran.errors;
}

TEST(DiskFaultTest, SessionThatIsTooLargeEndsAlone) {
  Scratch scratch;
  CollectorProcess collector(scratch, {"--max-session-bytes", "4000000"});
  RawAgent other(collector.ingest_port(), kPid + 1);
  ASSERT_TRUE(other.ready);
  ASSERT_EQ(feed(other, 2), 2u);
  {
    RawAgent agent(collector.ingest_port(), kPid);
    ASSERT_TRUE(agent.ready);
    EXPECT_LT(feed(agent, 4000), 4000u);
  }
  expect_failed(collector, kPid, "max_session_bytes reached");
  EXPECT_EQ(session_directories(collector.root(), static_cast<int>(kPid)).size(), 1u);
  EXPECT_TRUE(finish(other, 2)) << collector.process().errors();
  expect_a_session_works(collector, kPid + 2);
}

TEST(DiskFaultTest, ReadOnlyRootIsRefusedAtTheStart) {
  Scratch scratch;
  SmallDisk disk(scratch / "disk", "8m");
  NEEDS(disk);
  filesystem::create_directories(scratch / "disk/root");
  ASSERT_TRUE(disk.make_read_only());
  for (const char* const root : {"disk/root", "disk/not_there"}) {
    const Ending ending =
        run(scratch.path(), {program("collectord"), "--root", scratch / root, "--ingest",
                             "127.0.0.1:" + std::to_string(free_port()), "--control",
                             "127.0.0.1:" + std::to_string(free_port())});
    EXPECT_TRUE(ending.exited_with(2)) << ending.describe();
    EXPECT_NE(ending.errors.find(scratch / root), std::string::npos) << ending.errors;
    EXPECT_NE(ending.errors.find("Read-only file system"), std::string::npos) << ending.errors;
    EXPECT_EQ(std::count(ending.errors.begin(), ending.errors.end(), '\n'), 1) << ending.errors;
  }
}

// The files that are open go on; the next one that is to be made is missed.
TEST(DiskFaultTest, RootIsMovedWhileRecording) {
  Scratch scratch;
  CollectorProcess collector(scratch);
  const std::string elsewhere = scratch / "elsewhere";
  RawAgent agent(collector.ingest_port(), kPid);
  ASSERT_TRUE(agent.ready);
  ASSERT_EQ(feed(agent, 4), 4u);
  const auto directories = [&] {
    return session_directories(collector.root(), static_cast<int>(kPid));
  };
  ASSERT_TRUE(eventually(seconds(30), [&] {
    return !directories().empty() && filesystem::exists(directories()[0] + "/thread_0/index.atf") &&
           filesystem::file_size(directories()[0] + "/thread_0/index.atf") ==
               64 + 4 * kEventsPerPage * 32;
  }));
  const std::string name = directories()[0].substr(collector.root().size());
  filesystem::rename(collector.root(), elsewhere);
  wire::StreamOpen open;
  open.set_recording(1);
  open.set_stream_id(2);
  open.set_thread_id(kPid + 1);
  open.set_start_ns(1);
  ASSERT_TRUE(agent.data.send(wire::FrameType::kStreamOpen, open));
  const auto refused = agent.control.refusal();
  ASSERT_TRUE(refused) << collector.process().errors();
  EXPECT_NE(refused->reason().find("No such file or directory"), std::string::npos)
      << refused->reason();
  // It is shown as failed, and why.
  ASSERT_TRUE(eventually(seconds(30), [&] {
    const Ending shown = collector.ctl({"--json", "sessions"});
    return shown.output.find("failed") != std::string::npos &&
           shown.output.find("No such file") != std::string::npos;
  })) << collector.ctl({"--json", "sessions"}).output;
  expect_a_session_works(collector, kPid + 2);  // the root is made again
  const Ending recovered = collector.ctl({"recover", elsewhere + name});
  EXPECT_TRUE(recovered.exited_with(0) || recovered.exited_with(1)) << recovered.errors;
  EXPECT_EQ(RecordedSession(elsewhere + name).totals().events, 4u * kEventsPerPage);
}

// What a former daemon left, as this one finds it at its start: STORAGE.md "Recovery".
TEST(DiskFaultTest, EveryStateThatCanBeFoundAtTheStart) {
  Scratch scratch;
  filesystem::create_directories(scratch / "root");
  struct Left {
    const storage::test::FoundState* found;
    std::string directory;
  };
  std::vector<Left> left;
  for (const storage::test::FoundState& found : storage::test::found_states()) {
    // Each is made in a root of its own, for some clear it; then it moves below one.
    const std::string own = scratch / found.row;
    filesystem::create_directories(own);
    const filesystem::path made = found.make(own);
    const std::string session = "session_20250101_0000" + std::to_string(10 + left.size());
    filesystem::rename(made.parent_path(), scratch / ("root/" + session));
    left.push_back({&found, scratch / ("root/" + session + "/" + made.filename().string())});
  }
  CollectorProcess collector(scratch, {"--resume-ms", "0"}, scratch / "root");
  std::erase_if(left, [](const Left& one) {
    return std::string(one.found->row) == "SealedWithLeftovers";  // only listed
  });
  for (const Left& one : left) {
    SCOPED_TRACE(one.found->row);
    EXPECT_TRUE(eventually(seconds(30), [&] {
      if (one.found->removed) return !filesystem::exists(one.directory);
      const std::string json = read_text_file(one.directory + "/manifest.json");
      const auto manifest = nlohmann::json::parse(json, nullptr, false);
      return manifest.is_object() &&
             manifest.value("state", std::string("recording")) != "recording" &&
             !filesystem::exists(one.directory + "/reserve.space");
    })) << collector.process().errors();
  }
  collector.stop();  // all work is done
  for (const Left& one : left) {
    SCOPED_TRACE(one.found->row);
    expect_recovered_as(*one.found, one.directory);
  }
}

}  // namespace
}  // namespace collect::e2e
