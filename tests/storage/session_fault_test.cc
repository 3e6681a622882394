// A recording in which the disk or the process fails at every point there is. Afterwards what is
// stored must be right, whole and accounted for.
#include <algorithm>

#include "storage/session_writer.h"
#include "tests/storage/fault_fs.h"
#include "tests/storage/session_fixture.h"

namespace collect::storage::test {
namespace {

using Detail = FakeStream::Detail;

// Two threads, details, pre-roll, an overwritten page, dropped events, a stream that ends; commits
// in between. Remembers what was promised.
class Scenario {
 public:
  Scenario() : one_(atf::Version::kV2, 1, 100), two_(atf::Version::kV2, 2, 200) {
    one_.add_many(6, Detail::kPreRoll);
    one_.add_many(12, Detail::kLinked);
    one_.add_many(4);
    two_.add_many(9, Detail::kLinked);
  }

  // Goes on until the first error.
  Status run(Fs& fs, const SessionOptions& options) {
    auto made = SessionWriter::create(fs, options, test_identity());
    if (!made.ok()) return made.error();
    session = std::move(*made);
    directory = session->directory();
    ModuleInfo module;
    module.path = "/bin/program";
    COLLECT_TRY(session->add_modules({&module, 1}));
    COLLECT_TRY(session->open_stream(one_.info()));
    COLLECT_TRY(store(one_.index_page(0, 8)));
    COLLECT_TRY(commit());
    COLLECT_TRY(store(one_.detail_page(0, 6, true)));
    COLLECT_TRY(session->open_stream(two_.info()));
    const Page both[] = {two_.index_page(0, 5), two_.index_page(5, 4), two_.detail_page(0, 9)};
    COLLECT_TRY(session->append_pages(both));
    COLLECT_TRY(commit());
    Page after_gap = one_.index_page(11, 5);  // 8, 9 and 10 were overwritten
    after_gap.lost_reasons = kLostOverwritten;
    after_gap.lost_total = 2;
    COLLECT_TRY(store(after_gap));
    COLLECT_TRY(store(one_.detail_page(6, 12)));
    COLLECT_TRY(commit());
    COLLECT_TRY(store(one_.index_page(16, 6)));
    COLLECT_TRY(session->close_stream(two_.end()));
    COLLECT_TRY(commit());
    COLLECT_TRY(session->close_stream(one_.end(2)));
    COLLECT_TRY(session->seal(SessionState::kComplete, "done"));
    sealed = true;
    return {};
  }

  // Everything again, as an agent does that holds all it ever recorded, then the end.
  Status finish(SessionWriter& writer) {
    ModuleInfo module;
    module.path = "/bin/program";
    COLLECT_TRY(writer.add_modules({&module, 1}));
    COLLECT_TRY(writer.open_stream(one_.info()));
    COLLECT_TRY(writer.open_stream(two_.info()));
    Page first = one_.index_page(0, 8);
    Page second = one_.index_page(11, 11);
    second.lost_reasons = kLostOverwritten;
    second.lost_total = 2;
    const Page pages[] = {first, second, one_.detail_page(0, 18), two_.index_page(0, 9),
                          two_.detail_page(0, 9)};
    COLLECT_TRY(writer.append_pages(pages));
    COLLECT_TRY(writer.close_stream(one_.end(2)));
    COLLECT_TRY(writer.close_stream(two_.end()));
    return writer.seal(SessionState::kComplete, "done");
  }

  FakeStream::Sections expected_one() const { return one_.expected({8, 9, 10}, {}); }
  FakeStream::Sections expected_two() const { return two_.expected({}, {}); }

  std::unique_ptr<SessionWriter> session;
  std::string directory;
  std::vector<StreamPosition> promised;  // by the last commit that succeeded
  bool sealed = false;

 private:
  Status store(const Page& page) { return session->append_pages({&page, 1}); }
  Status commit() {
    COLLECT_TRY(session->commit());
    promised = session->positions();
    return {};
  }

  FakeStream one_;
  FakeStream two_;
};

class SessionFaultTest : public SessionTest {
 protected:
  SessionOptions options_for(Durability durability) {
    SessionOptions options = SessionTest::options();
    options.durability = durability;
    return options;
  }
  uint64_t changes_of_a_whole_run(Durability durability) {
    TemporaryDirectory elsewhere;
    SessionOptions options = options_for(durability);
    options.root = elsewhere.path();
    FaultFs counting;
    Scenario scenario;
    EXPECT_OK(scenario.run(counting, options));
    return counting.changes();
  }
  void clear_root() {
    for (const auto& entry : std::filesystem::directory_iterator(root.path())) {
      std::filesystem::remove_all(entry.path());
    }
  }

  static void expect_positions(const SessionWriter& session,
                               const std::vector<StreamPosition>& promised) {
    const std::vector<StreamPosition> positions = session.positions();
    for (const StreamPosition& promise : promised) {
      const auto held =
          std::find_if(positions.begin(), positions.end(),
                       [&](const StreamPosition& p) { return p.stream_id == promise.stream_id; });
      ASSERT_NE(held, positions.end());
      EXPECT_GE(held->index_next, promise.index_next);
      EXPECT_GE(held->detail_next, promise.detail_next);
    }
  }

  // Every byte of a session in which nothing was lost but what the agent itself lost.
  static void expect_exact(const Scenario& scenario) {
    const std::string& directory = scenario.directory;
    const auto one = scenario.expected_one();
    const auto two = scenario.expected_two();
    EXPECT_EQ(section_of(directory + "/thread_0/index.atf"), one.index);
    EXPECT_EQ(section_of(directory + "/thread_0/detail.atf"), one.detail);
    EXPECT_EQ(section_of(directory + "/thread_1/index.atf"), two.index);
    EXPECT_EQ(section_of(directory + "/thread_1/detail.atf"), two.detail);
  }

  // What must hold of any sealed session of the scenario.
  void expect_whole(const std::string& directory, const std::vector<StreamPosition>& promised,
                    bool power_was_lost = false) {
    const Manifest manifest = manifest_of(directory);
    EXPECT_NE(manifest.state, SessionState::kRecording);
    expect_reader_ok(directory);
    uint64_t events = 0;
    for (const ManifestThread& thread : manifest.threads) {
      const std::string files = directory + "/thread_" + std::to_string(thread.id);
      EXPECT_EQ(section_of(files + "/index.atf").size(), thread.events * 32);
      EXPECT_EQ(std::filesystem::exists(files + "/detail.atf"), thread.has_detail);
      EXPECT_FALSE(std::filesystem::exists(files + "/stream.journal"));
      EXPECT_FALSE(std::filesystem::exists(files + "/detail.atf.new"));
      events += thread.events;
    }
    EXPECT_EQ(manifest.totals.events, events);
    EXPECT_FALSE(std::filesystem::exists(directory + "/reserve.space"));
    EXPECT_FALSE(std::filesystem::exists(directory + "/manifest.json.new"));
    for (const StreamPosition& position : promised) {
      const auto thread =
          std::find_if(manifest.threads.begin(), manifest.threads.end(),
                       [&](const ManifestThread& t) { return t.stream_id == position.stream_id; });
      ASSERT_NE(thread, manifest.threads.end());
      // Of stream 1, the three overwritten events are the only ones with numbers that were lost.
      const uint64_t overwritten = thread->stream_id == 1 && position.index_next > 8 ? 3 : 0;
      EXPECT_GE(thread->events + overwritten, position.index_next);
      EXPECT_GE(thread->detail_records + thread->lost_detail_records, position.detail_next);
    }
    // Only the power takes away what was stored, and only behind the last commit.
    for (const Gap& gap : manifest.gaps) {
      EXPECT_TRUE(power_was_lost || (gap.reasons & kLostDamaged) == 0);
    }
  }
};

TEST_F(SessionFaultTest, TheScenarioItself) {
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
    auto session = SessionWriter::resume(fs, options(), directory);
    if (!session.ok()) {
      // Before the first manifest there is nothing, after the sealing began nobody goes on.
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

// With Durability::kFsync, what commit() returned for survives the loss of everything unsynced.
TEST_F(SessionFaultTest, PowerLossKeepsWhatWasPromised) {
  const SessionOptions durable = options_for(Durability::kFsync);
  const uint64_t changes = changes_of_a_whole_run(Durability::kFsync);
  uint64_t with_promises = 0;
  for (uint64_t k = 0; k <= changes; ++k) {
    SCOPED_TRACE(k);
    clear_root();
    FaultFs broken({k, Code::kIo, true, false});
    Scenario scenario;
    const Status status = scenario.run(broken, durable);
    EXPECT_EQ(status.ok(), k == changes);
    scenario.session.reset();
    broken.lose_power(root.path());
    if (scenario.promised.empty()) continue;
    ++with_promises;
    if (k % 2 == 1) {
      // The agent comes back, and holds everything that was not acknowledged.
      auto session = SessionWriter::resume(fs, durable, scenario.directory);
      EXPECT_TRUE(session.ok() || session.code() == Code::kCancelled) << to_string(session.error());
      if (session.ok()) {
        expect_positions(**session, scenario.promised);
        ASSERT_OK(scenario.finish(**session));
        expect_exact(scenario);
        continue;
      }
    }
    auto recovered = recover_session(fs, durable, scenario.directory);
    ASSERT_OK(recovered);
    expect_whole(scenario.directory, scenario.promised, true);
    EXPECT_TRUE(recovered->was_sealed || !scenario.sealed);
    if (k % 16 == 0) expect_reference_ok(scenario.directory);
  }
  EXPECT_GT(with_promises, 20u);
}

}  // namespace
}  // namespace collect::storage::test
