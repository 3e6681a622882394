// A stream of another format in a session: stored as it came, cut back to whole frames after a
// crash, and built again from containers.
#include <algorithm>
#include <random>

#include "storage/rebuild/capture_replay.h"
#include "storage/session/session.h"
#include "tests/fakes/dial9_stream.h"
#include "tests/storage/fault_fs.h"
#include "tests/storage/power_loss_fs.h"
#include "tests/storage/session_fixture.h"

namespace collect::storage::test {
namespace {

namespace filesystem = std::filesystem;
using fakes::dial9_stream;
using fakes::dial9_whole_bytes;

constexpr PassthroughKind kDial9 = PassthroughKind::kDial9;

class PassthroughStreamTest : public SessionTest {
 protected:
  std::unique_ptr<Session> begin(Fs& files, const SessionOptions& with) {
    auto session = Session::create(files, with, feed_identity());
    EXPECT_TRUE(session.ok()) << to_string(session.error());
    return session.ok() ? std::move(*session) : nullptr;
  }
  static SessionIdentity feed_identity() {
    SessionIdentity identity;
    identity.process_id = {9, 9, 9};
    identity.process_name = "dial9";
    identity.device_id = "127.0.0.1:4711";
    identity.start_ns = 1000;
    identity.start_unix_ns = 1'800'000'000'000'000'000;
    return identity;
  }
  SessionOptions capturing(uint64_t roll_bytes, uint64_t budget_bytes = 0) {
    SessionOptions with = options();
    with.capture.enabled = true;
    with.capture.roll_bytes = roll_bytes;
    with.capture.budget_bytes = budget_bytes;
    return with;
  }

  // In chunks of whole frames, about `step` bytes each, in two parts.
  static Status append_all(Session& session, Bytes stream, size_t step) {
    for (size_t at = 0; at < stream.size();) {
      size_t end = stream.size();
      for (size_t tried = at + step; tried < end; tried += step) {
        const size_t whole = dial9_whole_bytes(stream.first(tried));
        if (whole > at) end = whole;
      }
      const Bytes chunk = stream.subspan(at, end - at);
      const Bytes parts[] = {chunk.first(chunk.size() / 3), chunk.subspan(chunk.size() / 3)};
      COLLECT_TRY(session.append_passthrough(kDial9, parts));
      COLLECT_TRY(session.commit());
      at = end;
    }
    return {};
  }
  static std::vector<uint8_t> stored(const std::string& directory) {
    return read_file(directory + "/stream.dial9");
  }
  static std::vector<std::string> containers_in(const std::string& directory) {
    std::vector<std::string> names;
    for (const auto& entry : filesystem::directory_iterator(directory)) {
      if (entry.path().extension() == ".rtc") names.push_back(entry.path().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  Result<ReplayReport> rebuild(const std::vector<std::vector<uint8_t>>& containers) {
    SessionOptions target;
    target.root = root.path() + "/rebuilt";
    CaptureReplay replay(fs, target);
    int number = 0;
    for (const std::vector<uint8_t>& bytes : containers) {
      COLLECT_TRY(replay.add("container " + std::to_string(++number), bytes));
    }
    return replay.finish();
  }
  Result<ReplayReport> rebuild(const std::string& directory) {
    std::vector<std::vector<uint8_t>> containers;
    for (const std::string& path : containers_in(directory)) containers.push_back(read_file(path));
    return rebuild(containers);
  }
};

TEST_F(PassthroughStreamTest, BytesAreStoredAsTheyCame) {
  const std::vector<uint8_t> stream = dial9_stream(3, 500);
  auto session = begin(fs, options());
  EXPECT_TRUE(session->name().ends_with("/pid_0")) << session->name();
  ASSERT_OK(append_all(*session, stream, 1000));
  EXPECT_EQ(session->totals().stored_bytes, stream.size());
  EXPECT_EQ(session->totals().threads, 0u);
  ASSERT_OK(session->end_passthrough(kDial9, 0, ""));
  ASSERT_OK(session->seal(SessionState::kComplete, ""));
  EXPECT_EQ(stored(session->directory()), stream);
  const Manifest manifest = manifest_of(session->directory());
  EXPECT_EQ(manifest.state, SessionState::kComplete);
  ASSERT_EQ(manifest.passthrough_streams.size(), 1u);
  EXPECT_EQ(manifest.passthrough_streams[0].bytes, stream.size());
  EXPECT_EQ(manifest.passthrough_streams[0].refused_bytes, 0u);
  EXPECT_EQ(manifest.passthrough_streams[0].problem, "");
  EXPECT_EQ(manifest.totals.stored_bytes, stream.size());
  EXPECT_EQ(*fs.list_directory(session->directory()),
            (std::vector<std::string>{"manifest.json", "stream.dial9"}));
  ASSERT_EQ(list_sessions_of(root.path()).size(), 1u);
}

TEST_F(PassthroughStreamTest, ThreadsAndAStreamMayShareASession) {
  FakeStream thread(atf::Version::kV2, 1, 100);
  thread.add_many(20);
  auto session = make();
  ASSERT_OK(session->open_stream(thread.info()));
  ASSERT_OK(append(*session, thread.index_page(0, 20)));
  ASSERT_OK(append_all(*session, fakes::kDial9Example, 100));
  ASSERT_OK(session->seal(SessionState::kComplete, ""));
  EXPECT_EQ(stored(session->directory()), fakes::kDial9Example);
  EXPECT_EQ(section_of(session->directory() + "/thread_0/index.atf"), thread.index_bytes());
  EXPECT_EQ(session->totals().stored_bytes, 20 * 32u + fakes::kDial9Example.size());
}

TEST_F(PassthroughStreamTest, ManifestCountsRefusedBytes) {
  auto session = begin(fs, options());
  ASSERT_OK(append_all(*session, fakes::kDial9Example, 100));
  ASSERT_OK(session->end_passthrough(kDial9, 17, "tag: at 33: no frame has the tag 255"));
  ASSERT_OK(session->seal(SessionState::kRecovered, "damaged"));
  const Manifest manifest = manifest_of(session->directory());
  ASSERT_EQ(manifest.passthrough_streams.size(), 1u);
  EXPECT_EQ(manifest.passthrough_streams[0].bytes, 33u);
  EXPECT_EQ(manifest.passthrough_streams[0].refused_bytes, 17u);
  EXPECT_EQ(manifest.passthrough_streams[0].problem, "tag: at 33: no frame has the tag 255");
}

// The daemon was killed while the last bytes were written: at every length.
TEST_F(PassthroughStreamTest, RecoveryCutsBackToWholeFrames) {
  const std::vector<uint8_t>& stream = fakes::kDial9Example;
  for (size_t bytes = 0; bytes <= stream.size(); ++bytes) {
    SCOPED_TRACE(bytes);
    auto session = begin(fs, options());
    ASSERT_OK(append_all(*session, stream, 100));
    const std::string directory = session->directory();
    session.reset();
    filesystem::resize_file(directory + "/stream.dial9", bytes);
    if (bytes % 3 == 0) filesystem::remove(directory + "/manifest.json");
    auto recovered = recover_session(fs, options(), directory);
    ASSERT_OK(recovered);
    size_t whole = 0;
    for (const size_t end : fakes::kDial9ExampleFrameEnds) whole = end <= bytes ? end : whole;
    EXPECT_EQ(recovered->state, SessionState::kRecovered);
    EXPECT_EQ(recovered->totals.stored_bytes, whole);
    EXPECT_EQ(stored(directory),
              std::vector<uint8_t>(stream.begin(), stream.begin() + long(whole)));
    const Manifest manifest = manifest_of(directory);
    EXPECT_EQ(manifest.identity.process_name, "dial9");
    ASSERT_EQ(manifest.passthrough_streams.size(), 1u);
    EXPECT_EQ(manifest.passthrough_streams[0].bytes, whole);
    EXPECT_EQ(manifest.passthrough_streams[0].refused_bytes, bytes - whole);
    EXPECT_EQ(manifest.passthrough_streams[0].problem.empty(), whole == bytes);
    EXPECT_FALSE(fs.exists(directory + "/reserve.space"));
    auto again = recover_session(fs, options(), directory);
    ASSERT_OK(again);
    EXPECT_TRUE(again->was_sealed);
  }
}

TEST_F(PassthroughStreamTest, RecoveryKeepsTheStreamBeforeDamage) {
  const std::vector<uint8_t> stream = dial9_stream(4, 300);
  auto session = begin(fs, options());
  ASSERT_OK(append_all(*session, stream, 5000));
  const std::string directory = session->directory();
  session.reset();
  std::vector<uint8_t> damaged = stream;
  damaged.insert(damaged.end(), 4096, 0);  // the length without the bytes
  write_file(directory + "/stream.dial9", damaged);
  auto recovered = recover_session(fs, options(), directory);
  ASSERT_OK(recovered);
  EXPECT_EQ(stored(directory), stream);
  const PassthroughStream entry = manifest_of(directory).passthrough_streams.at(0);
  EXPECT_EQ(entry.refused_bytes, 4096u);
  EXPECT_NE(entry.problem.find("tag: at " + std::to_string(stream.size())), std::string::npos)
      << entry.problem;
}

TEST_F(PassthroughStreamTest, UnreadableFileDoesNotStopTheSealing) {
  auto session = begin(fs, options());
  ASSERT_OK(append_all(*session, fakes::kDial9Example, 100));
  const std::string directory = session->directory();
  session.reset();
  filesystem::remove(directory + "/stream.dial9");
  auto recovered = recover_session(fs, options(), directory);
  ASSERT_OK(recovered);
  EXPECT_EQ(recovered->problems.size(), 1u);
  const PassthroughStream entry = manifest_of(directory).passthrough_streams.at(0);
  EXPECT_EQ(entry.bytes, 0u);
  EXPECT_FALSE(entry.problem.empty());
}

// What the last manifest knew is the measure, where it is of the very end.
TEST_F(PassthroughStreamTest, ReportsStoredBytesThatAreGone) {
  const size_t kept_bytes = fakes::kDial9ExampleFrameEnds[2];
  for (const bool is_gone : {false, true}) {
    auto session = begin(fs, options());
    ASSERT_OK(append_all(*session, fakes::kDial9Example, 100));
    ASSERT_OK(session->suspend("the collector stopped"));
    const std::string directory = session->directory();
    session.reset();
    EXPECT_EQ(manifest_of(directory).passthrough_streams.at(0).bytes, fakes::kDial9Example.size());
    if (is_gone) {
      filesystem::remove(directory + "/stream.dial9");
    } else {
      filesystem::resize_file(directory + "/stream.dial9", kept_bytes);
    }
    auto resumed = Session::resume(fs, options(), directory);
    ASSERT_OK(resumed);
    const Bytes more = fakes::kDial9Example;
    const Status appended = (*resumed)->append_passthrough(kDial9, {&more, 1});
    EXPECT_EQ(appended.ok(), !is_gone);
    EXPECT_EQ((*resumed)->commit().ok(), !is_gone);
    (*resumed).reset();
    auto recovered = recover_session(fs, options(), directory);
    ASSERT_OK(recovered);
    const PassthroughStream entry = manifest_of(directory).passthrough_streams.at(0);
    EXPECT_EQ(entry.bytes, is_gone ? 0 : kept_bytes + more.size());
    EXPECT_EQ(recovered->totals.stored_bytes, entry.bytes);
    const std::string expected = is_gone ? "stream.dial9: open"
                                         : std::to_string(more.size() - kept_bytes) +
                                               " bytes that were stored are not there any more";
    EXPECT_NE(entry.problem.find(expected), std::string::npos) << entry.problem;
  }
}

TEST_F(PassthroughStreamTest, ManifestIsWrittenBehindARolledContainer) {
  const std::vector<uint8_t> stream = dial9_stream(1, 200);
  auto session = begin(fs, capturing(uint64_t{1} << 30));
  ASSERT_OK(append_all(*session, stream, 1000));
  ASSERT_OK(session->roll_container());
  EXPECT_EQ(manifest_of(session->directory()).passthrough_streams.at(0).bytes, 0u);
  ASSERT_OK(session->commit());
  EXPECT_EQ(manifest_of(session->directory()).passthrough_streams.at(0).bytes, stream.size());
}

// What was committed with fsync is there after a power loss at any change; what was not is no more
// than a part of a frame, and is cut off.
TEST_F(PassthroughStreamTest, CommittedBytesSurvivePowerLossAtEveryPoint) {
  const std::vector<uint8_t> stream = dial9_stream(2, 40);
  SessionOptions with = capturing(2000);
  with.durability = Durability::kFsync;
  for (uint64_t fail_at = 0;; ++fail_at) {
    SCOPED_TRACE(fail_at);
    FaultFs faulty({.fail_at = fail_at, .crash = true, .short_write = true});
    PowerLossFs disk(faulty, root.path());
    uint64_t promised = 0;
    std::string directory;
    bool done = false;
    if (auto made = Session::create(disk, with, feed_identity()); made.ok()) {
      Session& session = **made;
      directory = session.directory();
      for (size_t at = 0; at < stream.size();) {
        const size_t end =
            dial9_whole_bytes(Bytes(stream).first(std::min(at + 700, stream.size())));
        const Bytes chunk = Bytes(stream).subspan(at, end - at);
        if (!session.append_passthrough(kDial9, {&chunk, 1}).ok() || !session.commit().ok()) break;
        promised = at = end;
      }
      done = session.seal(SessionState::kComplete, "").ok();
    }
    const Kept kept_part = fail_at % 3 == 0   ? Kept::kSynced
                           : fail_at % 3 == 1 ? Kept::kEverything
                                              : Kept::kSome;
    disk.lose_power(kept_part, fail_at);
    if (!directory.empty() && (promised != 0 || filesystem::exists(directory))) {
      auto recovered = recover_session(fs, options(), directory);
      if (promised != 0) {
        ASSERT_OK(recovered);
        const std::vector<uint8_t> kept = stored(directory);
        ASSERT_GE(kept.size(), promised);
        // Behind what was promised, sectors may be missing within a frame.
        const size_t right = kept_part == Kept::kSome ? promised : kept.size();
        EXPECT_TRUE(std::equal(kept.begin(), kept.begin() + long(right), stream.begin()));
        EXPECT_EQ(dial9_whole_bytes(kept), kept.size());
      }
    }
    filesystem::remove_all(root.path());
    filesystem::create_directory(root.path());
    if (done && !faulty.failed()) break;
  }
}

// Of bytes that may not be on the disk no seal says that all is well.
TEST_F(PassthroughStreamTest, SyncThatFailsWhileSealingIsSaid) {
  SessionOptions durable = options();
  durable.durability = Durability::kFsync;
  for (uint64_t k = 0;; ++k) {
    SCOPED_TRACE(k);
    FaultFs disk;
    auto session = begin(disk, durable);
    const Bytes stream = fakes::kDial9Example;
    ASSERT_OK(session->append_passthrough(kDial9, {&stream, 1}));
    disk.set_plan({.fail_at = disk.changes() + k, .syncs_only = true});
    const Status sealed = session->seal(SessionState::kComplete, "");
    EXPECT_EQ(sealed.ok(), !disk.failed());
    if (!disk.failed()) break;
    EXPECT_FALSE(session->sealed() &&
                 manifest_of(session->directory()).state == SessionState::kComplete);
  }
}

TEST_F(PassthroughStreamTest, FullDiskLeavesWholeFrames) {
  const std::vector<uint8_t> stream = dial9_stream(2, 3000);
  FaultFs small({.capacity = 150'000});
  auto session = begin(small, options());
  Status stopped;
  uint64_t counted = 0;
  for (size_t at = 0; at < stream.size() && stopped.ok();) {
    const size_t end = dial9_whole_bytes(Bytes(stream).first(std::min(at + 9000, stream.size())));
    const Bytes chunk = Bytes(stream).subspan(at, end - at);
    stopped = session->append_passthrough(kDial9, {&chunk, 1});
    if (stopped.ok()) counted = at = end;
  }
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.code(), Code::kNoSpace);
  ASSERT_OK(session->seal(SessionState::kRecovered, ""));
  const std::vector<uint8_t> kept = stored(session->directory());
  EXPECT_EQ(kept.size(), counted);
  EXPECT_TRUE(std::equal(kept.begin(), kept.end(), stream.begin()));
  EXPECT_EQ(manifest_of(session->directory()).state, SessionState::kFailed);
}

TEST_F(PassthroughStreamTest, ContainersRebuildItByteForByte) {
  const std::vector<uint8_t> stream = dial9_stream(5, 2000);
  for (const uint64_t roll_bytes : {uint64_t{1} << 30, uint64_t{60'000}}) {
    auto session = begin(fs, capturing(roll_bytes));
    ASSERT_OK(append_all(*session, stream, 20'000));
    ASSERT_OK(session->end_passthrough(kDial9, 3, "truncated: the last three"));
    ASSERT_OK(session->seal(SessionState::kRecovered, "cut"));
    const std::string directory = session->directory();
    EXPECT_EQ(containers_in(directory).size() > 2, roll_bytes == 60'000);
    auto rebuilt = rebuild(directory);
    ASSERT_OK(rebuilt);
    EXPECT_TRUE(rebuilt->missing.empty()) << rebuilt->missing.front().what;
    EXPECT_EQ(stored(rebuilt->directory), stream);
    Manifest was = manifest_of(directory);
    was.containers.clear();
    EXPECT_EQ(manifest_to_json(was), manifest_to_json(manifest_of(rebuilt->directory)));
    filesystem::remove_all(root.path() + "/rebuilt");
  }
}

TEST_F(PassthroughStreamTest, ContainersStreamIsTheFileInChunks) {
  const std::vector<uint8_t> stream = dial9_stream(2, 1000);
  auto session = begin(fs, capturing(uint64_t{1} << 30));
  ASSERT_OK(append_all(*session, stream, 5000));
  ASSERT_OK(session->seal(SessionState::kComplete, ""));
  const std::vector<uint8_t> container = read_file(containers_in(session->directory()).front());
  auto reader = rtc::Reader::open(container);
  ASSERT_OK(reader);
  std::vector<uint8_t> taken;
  rtc::Object object;
  while (reader->next(object)) {
    if (object.stream->name != "dial9") continue;
    const Bytes payload = object.payload();
    taken.insert(taken.end(), payload.begin(), payload.end());
    EXPECT_EQ(dial9_whole_bytes(taken), taken.size());
  }
  EXPECT_EQ(taken, stream);
}

// The first containers are gone: the stream continues at the next sub-stream that is whole.
TEST_F(PassthroughStreamTest, RestIsAStreamWithoutTheFirstContainers) {
  const std::vector<uint8_t> stream = dial9_stream(20, 400);
  auto session = begin(fs, capturing(50'000, 150'000));
  ASSERT_OK(append_all(*session, stream, 7000));
  ASSERT_OK(session->seal(SessionState::kComplete, ""));
  ASSERT_GT(manifest_of(session->directory()).containers_removed, 0u);
  auto rebuilt = rebuild(session->directory());
  ASSERT_OK(rebuilt);
  EXPECT_EQ(rebuilt->state, SessionState::kRecovered);
  const std::vector<uint8_t> kept = stored(rebuilt->directory);
  ASSERT_GT(kept.size(), 0u);
  EXPECT_EQ(dial9_whole_bytes(kept), kept.size());
  EXPECT_TRUE(std::equal(kept.rbegin(), kept.rend(), stream.rbegin()));
  const PassthroughStream entry = manifest_of(rebuilt->directory).passthrough_streams.at(0);
  EXPECT_EQ(entry.bytes + entry.refused_bytes, stream.size());
  EXPECT_NE(entry.problem.find("not in the containers"), std::string::npos) << entry.problem;
}

TEST_F(PassthroughStreamTest, DamagedContainerRebuildsWholeFrames) {
  const std::vector<uint8_t> stream = dial9_stream(6, 800);
  auto session = begin(fs, capturing(uint64_t{1} << 30));
  ASSERT_OK(append_all(*session, stream, 6000));
  ASSERT_OK(session->seal(SessionState::kComplete, ""));
  const std::vector<uint8_t> whole = read_file(containers_in(session->directory()).front());
  std::mt19937 random(5);
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE(round);
    std::vector<uint8_t> damaged = whole;
    const size_t at = 8192 + random() % (damaged.size() - 8192);
    if (round % 2 == 0) {
      for (size_t i = at; i < std::min(at + 64, damaged.size()); ++i) damaged[i] ^= 0x5A;
    } else {
      damaged.resize(at);
    }
    auto rebuilt = rebuild({damaged});
    ASSERT_OK(rebuilt);
    const std::vector<uint8_t> kept = stored(rebuilt->directory);
    EXPECT_EQ(dial9_whole_bytes(kept), kept.size());
    EXPECT_LE(kept.size(), stream.size());
    if (kept != stream) {
      EXPECT_EQ(rebuilt->state, SessionState::kRecovered);
      EXPECT_FALSE(rebuilt->missing.empty() && round % 2 == 0);
    }
    filesystem::remove_all(root.path() + "/rebuilt");
  }
}

}  // namespace
}  // namespace collect::storage::test
