// With Durability::kFsync, what commit() returned for survives the power: cut at every change of a
// recording, with everything kept that a disk may keep, and read by recovery and by resuming.
#include "tests/storage/kept_records.h"
#include "tests/storage/power_loss_fs.h"
#include "tests/storage/session_scenario.h"

namespace collect::storage::test {
namespace {

struct Cut {
  Kept kept;
  uint64_t seed;
};
constexpr Cut kCuts[] = {{Kept::kSynced, 0},     {Kept::kNames, 0}, {Kept::kBytes, 0},
                         {Kept::kEverything, 0}, {Kept::kSome, 1},  {Kept::kSome, 2},
                         {Kept::kSome, 3}};

class PowerLossTest : public ScenarioTest {
 protected:
  PowerLossTest() : base_(root.path()) {}

  // Three levels that are not there: the way to the sessions must survive too. Containers roll at
  // every few pages, and the oldest go.
  SessionOptions durable() {
    SessionOptions with = options_for(Durability::kFsync);
    with.root = base_ + "/new/and/deep";
    with.capture.enabled = true;
    with.capture.roll_bytes = 6000;
    with.capture.budget_bytes = 20'000;
    return with;
  }
  uint64_t changes_of_a_durable_run() {
    FaultFs counting;
    Scenario scenario;
    EXPECT_OK(scenario.run(counting, durable()));
    clear_root();
    return counting.changes();
  }
  // Runs the scenario until change `k`, cuts the power, and gives what is left.
  void run_until(uint64_t k, const Cut& cut, Scenario& scenario) {
    clear_root();
    FaultFs process({k, Code::kIo, true, true});
    PowerLossFs disk(process, base_);
    (void)scenario.run(disk, durable());
    scenario.session.reset();
    disk.lose_power(cut.kept, cut.seed * 1'000'003 + k);
  }
  void expect_promises_kept(const Scenario& scenario) {
    const Manifest manifest = manifest_of(scenario.directory);
    for (const StreamPosition& promise : scenario.promised) {
      expect_kept(scenario.directory, manifest, scenario.stream(promise.stream_id), promise);
    }
    EXPECT_GE(manifest.totals.events, scenario.promised_totals.events);
    EXPECT_GE(manifest.totals.lost_events, scenario.promised_totals.lost_events);
    EXPECT_GE(manifest.totals.stalls.switches, scenario.promised_totals.stalls.switches);
  }

  const std::string base_;
};

TEST_F(PowerLossTest, RecoveredAfterACutAtEveryChange) {
  const uint64_t changes = changes_of_a_durable_run();
  ASSERT_GT(changes, 100u);
  uint64_t with_promises = 0;
  for (const Cut& cut : kCuts) {
    for (uint64_t k = 0; k <= changes; ++k) {
      SCOPED_TRACE("kept " + std::to_string(int(cut.kept)) + "." + std::to_string(cut.seed) +
                   ", change " + std::to_string(k));
      Scenario scenario;
      run_until(k, cut, scenario);
      if (scenario.promised.empty()) {
        // What is left of the beginning is removed, or is a session without records.
        for (const std::string& name : list_sessions_of(durable().root)) {
          const auto any = recover_session(fs, durable(), durable().root + "/" + name);
          EXPECT_TRUE(any.ok() || any.code() == Code::kNotFound) << to_string(any.error());
        }
        continue;
      }
      ++with_promises;
      auto recovered = recover_session(fs, durable(), scenario.directory);
      ASSERT_OK(recovered);
      EXPECT_TRUE(recovered->was_sealed || !scenario.sealed);
      expect_whole(scenario.directory, scenario.promised, true);
      expect_promises_kept(scenario);
      if (HasFailure()) return;
      if (k % 64 == 0) expect_reference_ok(scenario.directory, Payloads::kMayHaveZeros);
    }
  }
  EXPECT_GT(with_promises, 300u);
}

// The agent comes back, and holds everything that was not acknowledged.
TEST_F(PowerLossTest, ResumedAfterACutAtEveryChange) {
  const uint64_t changes = changes_of_a_durable_run();
  uint64_t resumed = 0;
  for (const Cut& cut : kCuts) {
    for (uint64_t k = 0; k < changes; ++k) {
      SCOPED_TRACE("kept " + std::to_string(int(cut.kept)) + "." + std::to_string(cut.seed) +
                   ", change " + std::to_string(k));
      Scenario scenario;
      run_until(k, cut, scenario);
      if (scenario.promised.empty()) continue;
      auto session = Session::resume(fs, durable(), scenario.directory);
      if (!session.ok()) {
        EXPECT_EQ(session.code(), Code::kCancelled) << to_string(session.error());
        continue;
      }
      ++resumed;
      expect_positions(**session, scenario.promised);
      ASSERT_OK(scenario.finish(**session));
      if (cut.kept != Kept::kSome) {
        expect_exact(scenario);
      } else {
        // Of what was not acknowledged, a detail record may have holes; nothing else may.
        expect_promises_kept(scenario);
        EXPECT_EQ(section_of(scenario.directory + "/thread_0/index.atf"),
                  scenario.expected_one().index);
      }
      const Manifest manifest = manifest_of(scenario.directory);
      EXPECT_EQ(manifest.totals.lost_events, 5u);  // 3 overwritten, 2 dropped
      EXPECT_EQ(manifest.totals.lost_detail_records, 3u);
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(resumed, 200u);
}

// A second cut while the recovery is at work, at every change of it; and a third recovery.
TEST_F(PowerLossTest, RecoveryItselfIsCutAtEveryChange) {
  const uint64_t changes = changes_of_a_durable_run();
  for (const Cut& cut : {kCuts[0], kCuts[3], kCuts[4], kCuts[5]}) {
    for (uint64_t died_at : {changes / 3, changes / 2, changes - 40, changes - 30, changes - 20,
                             changes - 12, changes - 4}) {
      for (uint64_t k = 0;; ++k) {
        SCOPED_TRACE("kept " + std::to_string(int(cut.kept)) + "." + std::to_string(cut.seed) +
                     ", change " + std::to_string(died_at) + ", then " + std::to_string(k));
        Scenario scenario;
        run_until(died_at, cut, scenario);
        ASSERT_FALSE(scenario.promised.empty());
        FaultFs process({k, Code::kIo, true, true});
        PowerLossFs disk(process, base_);
        const bool whole = recover_session(disk, durable(), scenario.directory).ok();
        disk.lose_power(cut.kept, cut.seed * 7919 + k);
        auto recovered = recover_session(fs, durable(), scenario.directory);
        ASSERT_OK(recovered);
        expect_whole(scenario.directory, scenario.promised, true);
        expect_promises_kept(scenario);
        if (HasFailure()) return;
        if (whole && !process.failed()) break;
      }
    }
  }
}

// The daemon is killed, its bytes stand in the system's cache alone; the next one resumes and
// promises them again, and then the power goes.
TEST_F(PowerLossTest, ResumedSessionSyncsBeforeItPromises) {
  const uint64_t changes = changes_of_a_durable_run();
  uint64_t promised_again = 0;
  for (const Cut& cut : kCuts) {
    for (uint64_t k = 0; k < changes; ++k) {
      SCOPED_TRACE("kept " + std::to_string(int(cut.kept)) + "." + std::to_string(cut.seed) +
                   ", change " + std::to_string(k));
      clear_root();
      FaultFs first({k, Code::kIo, true, true});
      PowerLossFs disk(first, base_);
      Scenario scenario;
      (void)scenario.run(disk, durable());
      scenario.session.reset();
      if (scenario.promised.empty()) continue;
      FaultFs second;
      disk.continue_with(second);
      auto session = Session::resume(disk, durable(), scenario.directory);
      if (!session.ok()) {
        // Its sealing was begun, and is finished: that survives too.
        ASSERT_OK(recover_session(disk, durable(), scenario.directory));
        disk.lose_power(cut.kept, k);
        EXPECT_NE(manifest_of(scenario.directory).state, SessionState::kRecording);
        ASSERT_OK(recover_session(fs, durable(), scenario.directory));
      } else {
        ASSERT_OK((*session)->commit());
        scenario.promised = (*session)->positions();
        std::erase_if(scenario.promised, [](const StreamPosition& position) {
          return position.index_next + position.detail_next == 0;
        });
        session->reset();
        ++promised_again;
        disk.lose_power(cut.kept, k);
        ASSERT_OK(recover_session(fs, durable(), scenario.directory));
      }
      expect_promises_kept(scenario);
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(promised_again, 100u);
}

}  // namespace
}  // namespace collect::storage::test
