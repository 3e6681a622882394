// A recording in which the disk or the process fails at every point there is. Afterwards what is
// stored must be right, whole and accounted for.
#include "tests/storage/session_scenario.h"

namespace collect::storage::test {
namespace {

class SessionFaultTest : public ScenarioTest {
 protected:
  // A thread is in the manifest before the first of its records is in a file.
  void expect_records_of_named_threads(const std::string& directory) {
    for (const char* lane : {kIndexFile, kDetailFile}) {
      for (uint32_t id = 0; id < 2; ++id) {
        std::error_code missing;
        const std::string path = directory + "/" + thread_directory_name(id) + "/" + lane;
        const uintmax_t bytes = std::filesystem::file_size(path, missing);
        if (missing || bytes <= atf::kHeaderBytes) continue;
        ++with_records_;
        const Manifest manifest = manifest_of(directory);
        EXPECT_TRUE(std::any_of(manifest.threads.begin(), manifest.threads.end(),
                                [&](const ManifestThread& thread) { return thread.id == id; }))
            << path;
      }
    }
  }

  // A write that failed has left nothing behind the last whole record: neither a part of a page nor
  // a part of a footer, which would be read as damaged records.
  static void expect_no_part_of_a_write(const Scenario& scenario) {
    for (const StreamPosition& at : scenario.session->positions()) {
      const uint64_t overwritten = at.stream_id == 1 && at.index_next > 8 ? 3 : 0;
      const uint64_t whole = atf::kHeaderBytes + (at.index_next - overwritten) * atf::kEventBytes;
      const uintmax_t bytes = std::filesystem::file_size(
          scenario.directory + "/" + thread_directory_name(at.stream_id - 1) + "/" + kIndexFile);
      EXPECT_TRUE(bytes == whole || bytes == whole + atf::kFooterBytes) << bytes << " " << whole;
    }
  }

  uint64_t with_records_ = 0;  // files that had some
};

TEST_F(SessionFaultTest, ScenarioItself) {
  Scenario scenario;
  ASSERT_OK(scenario.run(fs, options()));
  expect_whole(scenario.directory, scenario.promised);
  expect_reference_ok(scenario.directory);
  EXPECT_EQ(section_of(scenario.directory + "/thread_0/index.atf"), scenario.expected_one().index);
  EXPECT_EQ(section_of(scenario.directory + "/thread_0/detail.atf"),
            scenario.expected_one().detail);
  EXPECT_EQ(section_of(scenario.directory + "/thread_1/index.atf"), scenario.expected_two().index);
}

// kill -9 at every change, then the agent comes back to a new daemon: not one record is missing and
// none is there twice.
TEST_F(SessionFaultTest, ResumeAfterTheProcessDiedAtEveryPoint) {
  const uint64_t changes = changes_of_a_whole_run(Durability::kOs);
  ASSERT_GT(changes, 40u);
  uint64_t resumed = 0;
  for (uint64_t k = 0; k < changes; ++k) {
    SCOPED_TRACE(k);
    clear_root();
    FaultFs broken({k, Code::kIo, true, true});
    Scenario scenario;
    EXPECT_FALSE(scenario.run(broken, options()).ok());
    scenario.session.reset();
    const auto names = list_sessions_of(root.path());
    if (names.empty()) continue;
    const std::string directory = root.path() + "/" + names[0];
    scenario.directory = directory;
    auto session = Session::resume(fs, options(), directory);
    if (!session.ok()) {
      // Before the first manifest there is nothing, after the sealing began no one continues.
      EXPECT_TRUE(session.code() == Code::kNotFound || session.code() == Code::kCancelled)
          << to_string(session.error());
      continue;
    }
    ++resumed;
    expect_positions(**session, scenario.promised);
    ASSERT_OK(scenario.finish(**session));
    expect_exact(scenario);
    const Manifest manifest = manifest_of(directory);
    EXPECT_EQ(manifest.totals.lost_events, 5u);  // 3 overwritten, 2 dropped
    EXPECT_EQ(manifest.totals.lost_detail_records, 3u);
    expect_whole(directory, scenario.promised);
  }
  EXPECT_GT(resumed, 20u);
}

// The same, but the agent is gone too.
TEST_F(SessionFaultTest, RecoverAfterTheProcessDiedAtEveryPoint) {
  const uint64_t changes = changes_of_a_whole_run(Durability::kOs);
  for (uint64_t k = 0; k < changes; ++k) {
    SCOPED_TRACE(k);
    clear_root();
    FaultFs broken({k, Code::kIo, true, true});
    Scenario scenario;
    EXPECT_FALSE(scenario.run(broken, options()).ok());
    scenario.session.reset();
    const auto names = list_sessions_of(root.path());
    if (names.empty()) continue;
    const std::string directory = root.path() + "/" + names[0];
    expect_records_of_named_threads(directory);
    auto recovered = recover_session(fs, options(), directory);
    if (!recovered.ok()) {
      EXPECT_EQ(recovered.code(), Code::kNotFound) << to_string(recovered.error());
      EXPECT_TRUE(scenario.promised.empty());
      EXPECT_FALSE(std::filesystem::exists(directory));
      continue;
    }
    expect_whole(directory, scenario.promised);
    // A second recovery finds nothing to do.
    auto again = recover_session(fs, options(), directory);
    ASSERT_OK(again);
    EXPECT_TRUE(again->was_sealed);
    EXPECT_EQ(again->state, recovered->state);
    if (k % 8 == 0) expect_reference_ok(directory);
  }
  EXPECT_GT(with_records_, changes / 2);
}

// Recovery itself dies at every change, and is done again.
TEST_F(SessionFaultTest, RecoveryCanBeInterruptedAnywhere) {
  const uint64_t changes = changes_of_a_whole_run(Durability::kOs);
  for (const uint64_t died_at : {changes / 2, changes - 20, changes - 12, changes - 4}) {
    for (uint64_t k = 0;; ++k) {
      SCOPED_TRACE(std::to_string(died_at) + " then " + std::to_string(k));
      clear_root();
      FaultFs broken({died_at, Code::kIo, true, true});
      Scenario scenario;
      ASSERT_FALSE(scenario.run(broken, options()).ok());
      scenario.session.reset();
      const std::string directory = scenario.directory;
      FaultFs second({k, Code::kIo, true, true});
      const bool whole = recover_session(second, options(), directory).ok() && !second.failed();
      auto recovered = recover_session(fs, options(), directory);
      ASSERT_OK(recovered);
      expect_whole(directory, scenario.promised);
      if (k % 16 == 0) expect_reference_ok(directory);
      if (whole) break;
    }
  }
}

// One change fails, the process lives on: the session is sealed and says why.
TEST_F(SessionFaultTest, SealAfterOneErrorAtEveryPoint) {
  const uint64_t changes = changes_of_a_whole_run(Durability::kFsync);
  for (const Code code : {Code::kIo, Code::kNoSpace}) {
    for (uint64_t k = 0; k < changes; ++k) {
      SCOPED_TRACE(k);
      clear_root();
      FaultFs broken({k, code, false, true});
      Scenario scenario;
      const Status status = scenario.run(broken, options_for(Durability::kFsync));
      if (scenario.session == nullptr) {
        EXPECT_FALSE(status.ok());
        EXPECT_TRUE(list_sessions_of(root.path()).empty() || k > 5);
        continue;
      }
      const std::string directory = scenario.directory;
      expect_no_part_of_a_write(scenario);
      const Status sealed = scenario.session->seal(SessionState::kFailed, "a write failed");
      scenario.session.reset();
      if (!sealed.ok()) {
        ASSERT_OK(recover_session(fs, options(), directory));
      }
      expect_whole(directory, scenario.promised);
      if (k % 8 == 0) expect_reference_ok(directory);
    }
  }
}

// Others took all space, the reserve's too, and give it back little by little: sealing continues
// where it stopped.
TEST_F(SessionFaultTest, SealAgainWhenThereIsRoomAgain) {
  FaultFs measuring;
  Scenario whole;
  ASSERT_OK(whole.run(measuring, options()));
  const uint64_t most = 64 * 1024 + 2 * 12 * 1024 + measuring.used();
  uint64_t held_up = 0;
  uint64_t tried_again = 0;
  for (uint64_t capacity = 64 * 1024; capacity < most; capacity += 1311) {
    SCOPED_TRACE(capacity);
    clear_root();
    FaultPlan plan;
    plan.capacity = capacity;
    FaultFs full(plan);
    Scenario scenario;
    const Status status = scenario.run(full, options());
    if (scenario.session == nullptr || status.ok()) continue;
    Session& session = *scenario.session;
    std::filesystem::remove(scenario.directory + "/" + kReserveFile);
    ++held_up;
    for (uint64_t returned = 0; !session.sealed(); returned += 131) {
      ASSERT_LT(returned, 64u * 1024);
      plan.capacity = full.used() + returned;
      full.set_plan(plan);
      const Status sealed = session.seal(SessionState::kFailed, "disk full");
      if (sealed.ok()) break;
      EXPECT_EQ(sealed.code(), Code::kNoSpace) << to_string(sealed.error());
      ++tried_again;
    }
    EXPECT_TRUE(session.sealed());
    scenario.session.reset();
    expect_whole(scenario.directory, scenario.promised);
    const Manifest manifest = manifest_of(scenario.directory);
    EXPECT_EQ(manifest.state, SessionState::kFailed);
    EXPECT_EQ(manifest.reason.find("disk full; no space: "), 0u) << manifest.reason;
    expect_reference_ok(scenario.directory);
  }
  EXPECT_GT(held_up, 10u);
  EXPECT_GT(tried_again, held_up);
}

// The disk has room for so much and no more; other files are not written. The reserve sees to it
// that the session is sealed all the same.
TEST_F(SessionFaultTest, SealOnAFullDiskOfEverySize) {
  TemporaryDirectory elsewhere;
  SessionOptions whole_options = options();
  whole_options.root = elsewhere.path();
  FaultFs measuring;
  Scenario whole;
  ASSERT_OK(whole.run(measuring, whole_options));
  const uint64_t least = 64 * 1024;
  const uint64_t most = least + 2 * 12 * 1024 + measuring.used() + 2048;
  uint64_t failed = 0;
  for (uint64_t capacity = least; capacity < most; capacity += 131) {
    SCOPED_TRACE(capacity);
    clear_root();
    FaultPlan plan;
    plan.capacity = capacity;
    FaultFs full(plan);
    Scenario scenario;
    const Status status = scenario.run(full, options());
    if (scenario.session == nullptr) continue;
    if (!status.ok()) {
      EXPECT_EQ(status.code(), Code::kNoSpace) << to_string(status.error());
      ++failed;
      ASSERT_OK(scenario.session->seal(SessionState::kFailed, "disk full"));
      const Manifest manifest = manifest_of(scenario.directory);
      EXPECT_EQ(manifest.state, SessionState::kFailed);
      EXPECT_NE(manifest.reason.find("the disk is full"), std::string::npos) << manifest.reason;
    }
    expect_whole(scenario.directory, scenario.promised);
    if (failed % 16 == 0) expect_reference_ok(scenario.directory);
  }
  EXPECT_GT(failed, 20u);
}

}  // namespace
}  // namespace collect::storage::test
