// Disks that fail while the process lives on: the session ends as failed, readable, with a reason;
// what was acknowledged is there; and the next session is none the worse.
#include "storage/thread/lane_file.h"
#include "tests/storage/kept_records.h"
#include "tests/storage/session_scenario.h"

namespace collect::storage::test {
namespace {

class DiskFaultTest : public ScenarioTest {
 protected:
  // Containers too: what goes wrong with them must not end the session.
  SessionOptions capturing(Durability durability) {
    SessionOptions with = options_for(durability);
    with.capture.enabled = true;
    with.capture.roll_bytes = 6000;
    return with;
  }
  uint64_t changes_with(const SessionOptions& with, const FaultPlan& plan = {}) {
    FaultFs counting(plan);
    Scenario scenario;
    EXPECT_OK(scenario.run(counting, with));
    clear_root();
    return counting.changes();
  }
  // The promises hold for all that the manifest says now.
  void expect_promises_kept(const Scenario& scenario, bool had_room = true) {
    const Manifest manifest = manifest_of(scenario.directory);
    for (StreamPosition promise : scenario.promised) {
      // Without room for a new detail file, records whose links would change are dropped, and
      // counted: STORAGE.md "Links".
      if (!had_room) promise.detail_next = 0;
      expect_kept(scenario.directory, manifest, scenario.stream(promise.stream_id), promise);
    }
  }
  void expect_a_new_session_works(FaultFs& disk, const SessionOptions& with) {
    disk.set_plan({});
    Scenario next;
    ASSERT_OK(next.run(disk, with));
    expect_whole(next.directory, next.promised);
    expect_exact(next);
  }
};

TEST_F(DiskFaultTest, OneErrorAtEveryChangeWithContainers) {
  for (const Durability durability : {Durability::kOs, Durability::kFsync}) {
    const SessionOptions with = capturing(durability);
    const uint64_t changes = changes_with(with);
    for (const Code code : {Code::kIo, Code::kNoSpace, Code::kPermission, Code::kNotFound}) {
      for (uint64_t k = 0; k < changes; ++k) {
        SCOPED_TRACE(std::string(code_name(code)) + " at " + std::to_string(k));
        clear_root();
        FaultFs disk({.fail_at = k, .code = code, .short_write = true});
        Scenario scenario;
        const Status status = scenario.run(disk, with);
        if (scenario.session != nullptr) {
          // With an error or, where only a container was hit, without.
          const Status sealed =
              status.ok() ? status : scenario.session->seal(SessionState::kFailed, "");
          if (!sealed.ok()) ASSERT_OK(recover_session(fs, with, scenario.directory));
          expect_whole(scenario.directory, scenario.promised);
          expect_promises_kept(scenario, code != Code::kNoSpace);
        }
        if (k % 8 == 0) expect_a_new_session_works(disk, with);
        if (HasFailure()) return;
      }
    }
  }
}

// From some change on every write is refused: a full disk that stays full, or one that was mounted
// read-only. Sealing gets as far as it gets; the next start does the rest.
TEST_F(DiskFaultTest, SurvivesLastingWriteFailuresAtEveryChange) {
  const SessionOptions with = capturing(Durability::kFsync);
  const uint64_t changes = changes_with(with);
  for (const Code code : {Code::kPermission, Code::kNoSpace, Code::kIo}) {
    for (uint64_t k = 0; k < changes; ++k) {
      SCOPED_TRACE(std::string(code_name(code)) + " from " + std::to_string(k));
      clear_root();
      FaultFs disk({.fail_at = k, .code = code, .short_write = true, .lasting = true});
      Scenario scenario;
      EXPECT_FALSE(scenario.run(disk, with).ok());
      if (scenario.session != nullptr) {
        EXPECT_FALSE(scenario.session->seal(SessionState::kFailed, "").ok() && !scenario.sealed &&
                     manifest_of(scenario.directory).state == SessionState::kComplete);
        scenario.session.reset();
        ASSERT_OK(recover_session(fs, with, scenario.directory));
        expect_whole(scenario.directory, scenario.promised);
        expect_promises_kept(scenario, code != Code::kNoSpace);
      }
      if (k % 8 == 0) expect_a_new_session_works(disk, with);
      if (HasFailure()) return;
    }
  }
}

// The system reports a failed sync once and forgets the bytes: a second call would succeed.
TEST_F(DiskFaultTest, FailedSyncIsNeverTakenForASuccess) {
  const SessionOptions with = options_for(Durability::kFsync);
  const uint64_t syncs = changes_with(with, {.syncs_only = true});
  ASSERT_GT(syncs, 20u);
  uint64_t while_sealing = 0;
  for (uint64_t k = 0; k < syncs; ++k) {
    SCOPED_TRACE(k);
    clear_root();
    FaultFs disk({.fail_at = k, .code = Code::kIo, .syncs_only = true});
    Scenario scenario;
    ASSERT_FALSE(scenario.run(disk, with).ok());
    ASSERT_TRUE(disk.failed());
    if (scenario.session == nullptr) continue;  // nothing was begun
    const bool was_sealing = !scenario.session->failed();
    if (!was_sealing) {
      EXPECT_FALSE(scenario.session->commit().ok()) << "acknowledged after all";
      const Page page;
      EXPECT_FALSE(scenario.session->append_pages({&page, 1}).ok());
      (void)scenario.session->seal(SessionState::kComplete, "the agent is done");
    }
    while_sealing += was_sealing;
    Manifest manifest = manifest_of(scenario.directory);
    if (manifest.state == SessionState::kRecording) {
      // A file could not be made again: the next start does it again.
      scenario.session.reset();
      ASSERT_OK(recover_session(fs, with, scenario.directory));
    } else {
      EXPECT_EQ(manifest.state, SessionState::kFailed);
      EXPECT_NE(manifest.reason.find("fails on request"), std::string::npos) << manifest.reason;
      EXPECT_EQ(manifest.reason.find("fails on request"), manifest.reason.rfind("fails on request"))
          << "said twice: " << manifest.reason;
    }
    expect_whole(scenario.directory, scenario.promised);
    expect_promises_kept(scenario);
    if (HasFailure()) return;
  }
  EXPECT_GT(while_sealing, 5u);
}

TEST_F(DiskFaultTest, FileWithAFailedSyncIsNeverSynced) {
  FaultFs disk({.fail_at = 0, .code = Code::kIo, .syncs_only = true});
  FakeStream stream(atf::Version::kV2, 1, 100);
  stream.add_many(10);
  LaneFile file(disk, root.path() + "/index.atf", Lane::kIndex, {.thread_id = 100});
  ASSERT_OK(file.create(false));
  LaneSummary after;
  scan_index({}, stream.index_bytes(), 10, after);
  const Bytes parts[] = {stream.index_bytes()};
  ASSERT_OK(file.append(parts, after));
  EXPECT_FALSE(file.sync().ok());
  EXPECT_FALSE(file.sync().ok());  // the disk itself would take this one
  file.close();
  EXPECT_FALSE(file.sync().ok());
  EXPECT_FALSE(file.seal(true).ok());
  EXPECT_TRUE(file.sealed()) << "readable all the same";
}

// A clock of the day that is set back or forward: names, times and ages.
TEST_F(DiskFaultTest, StepsOfTheWallClock) {
  constexpr uint64_t kHour = 3'600'000'000'000;
  SessionOptions with = capturing(Durability::kOs);
  with.capture.roll_bytes = 0;
  with.capture.roll_ns = 10'000'000'000;
  std::set<std::string> names;
  for (const int64_t step : {0, -1, 1, -1, 1, 0, -2}) {
    clock.unix += uint64_t(step) * kHour;
    FakeStream stream(atf::Version::kV2, 1, 100);
    stream.add_many(40);
    auto session = Session::create(fs, with, test_identity());
    ASSERT_OK(session);
    EXPECT_TRUE(names.insert((*session)->name()).second) << (*session)->name();
    ASSERT_OK((*session)->open_stream(stream.info()));
    ASSERT_OK(append(**session, stream.index_page(0, 10)));
    const uint64_t began = clock.unix;
    clock.unix -= kHour;  // in the middle, no age goes by
    ASSERT_OK(append(**session, stream.index_page(10, 10)));
    clock.unix += 3 * kHour;
    ASSERT_OK(append(**session, stream.index_page(20, 10)));
    ASSERT_OK((*session)->commit());
    const std::string second = (*session)->directory() + "/" + container_name(2);
    EXPECT_FALSE(fs.exists(second)) << "rolled by a step";
    clock.monotonic += with.capture.roll_ns;  // now it does
    clock.unix -= 3 * kHour;
    ASSERT_OK(append(**session, stream.index_page(30, 10)));
    ASSERT_OK((*session)->seal(SessionState::kComplete, ""));
    const Manifest manifest = manifest_of((*session)->directory());
    EXPECT_EQ(manifest.containers.size(), 2u);
    EXPECT_EQ(manifest.created_unix_ns, began);
    EXPECT_GE(manifest.finished_unix_ns, manifest.created_unix_ns);
    EXPECT_EQ(manifest.totals.events, 40u);
    clock.unix = began;
  }
  EXPECT_EQ(list_sessions_of(root.path()).size(), names.size());
}

class MovedRootTest : public DiskFaultTest {
 protected:
  MovedRootTest() : root_(root.path() + "/traces"), lock_(fs, root_) {
    EXPECT_OK(lock_.hold());
    with_ = options_for(Durability::kOs);
    with_.root = root_;
    with_.root_lock = &lock_;
  }
  // Two threads: the file of the second is closed, as those of an ended stream are.
  void record() {
    auto made = Session::create(fs, with_, test_identity());
    ASSERT_OK(made);
    session_ = std::move(*made);
    one_.add_many(20);
    two_.add_many(20);
    ASSERT_OK(session_->open_stream(one_.info()));
    ASSERT_OK(session_->open_stream(two_.info()));
    const Page pages[] = {one_.index_page(0, 20), two_.index_page(0, 10)};
    ASSERT_OK(session_->append_pages(pages));
    ASSERT_OK(session_->commit());
  }
  // The next new file is the first that is missed.
  void expect_failing_with_a_reason() {
    Status status = append(*session_, two_.index_page(10, 10));
    FakeStream three(atf::Version::kV2, 3, 300);
    if (status.ok()) status = session_->open_stream(three.info());
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.code(), Code::kNotFound);
    EXPECT_NE(status.error().message.find(root_), std::string::npos) << status.error().message;
    EXPECT_TRUE(session_->failed());
    EXPECT_FALSE(session_->seal(SessionState::kFailed, "").ok());
    session_.reset();
  }
  void expect_a_new_session() {
    Scenario next;
    ASSERT_OK(next.run(fs, with_));
    expect_whole(next.directory, next.promised);
    // And it is ours alone, as the old root was.
    auto other = RootLock::take(fs, root_);
    ASSERT_FALSE(other.ok());
    EXPECT_EQ(other.code(), Code::kUnavailable);
  }

  const std::string root_;
  RootLock lock_;
  SessionOptions with_;
  std::unique_ptr<Session> session_;
  FakeStream one_{atf::Version::kV2, 1, 100};
  FakeStream two_{atf::Version::kV2, 2, 200};
};

TEST_F(MovedRootTest, RootIsMovedWhileRecording) {
  record();
  const std::string name = session_->name();
  const std::string elsewhere = root.path() + "/elsewhere";
  std::filesystem::rename(root_, elsewhere);
  expect_failing_with_a_reason();
  expect_a_new_session();
  // The old one is where it was moved to, and nothing that was stored is missing from it.
  auto recovered = recover_session(fs, with_, elsewhere + "/" + name);
  ASSERT_OK(recovered);
  EXPECT_EQ(recovered->totals.events, 40u);
  expect_reference_ok(elsewhere + "/" + name);
}

TEST_F(MovedRootTest, RootIsRemovedWhileRecording) {
  record();
  std::filesystem::remove_all(root_);
  expect_failing_with_a_reason();
  expect_a_new_session();
}

TEST_F(MovedRootTest, AnotherCollectorTookThePlace) {
  record();
  std::filesystem::rename(root_, root.path() + "/elsewhere");
  auto other = RootLock::take(fs, root_);
  ASSERT_OK(other);
  auto refused = Session::create(fs, with_, test_identity());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.code(), Code::kUnavailable);
}

}  // namespace
}  // namespace collect::storage::test
