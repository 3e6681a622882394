// What is found in a session directory after the daemon ended, and what becomes of it.
#include "storage/model/session_layout.h"
#include "storage/session/session.h"
#include "tests/storage/session_fixture.h"

namespace collect::storage::test {
namespace {

using Detail = FakeStream::Detail;

class SessionRecoveryTest : public SessionTest, public ::testing::WithParamInterface<atf::Version> {
 protected:
  SessionRecoveryTest() : stream(GetParam(), 1, 100) { stream.add_many(40, Detail::kLinked); }

  // A recording of all 40 events and details whose daemon is gone; returns its directory.
  std::string abandoned() {
    auto session = make(GetParam());
    EXPECT_OK(session->open_stream(stream.info()));
    const Page pages[] = {stream.index_page(0, 32), stream.detail_page(0, 36),
                          stream.index_page(32, 8), stream.detail_page(36, 4)};
    EXPECT_OK(session->append_pages(pages));
    EXPECT_OK(session->commit());
    return session->directory();
  }
  static void cut(const std::string& path, uint64_t bytes) {
    std::filesystem::resize_file(path, bytes);
  }

  FakeStream stream;
};

INSTANTIATE_TEST_SUITE_P(Versions, SessionRecoveryTest,
                         ::testing::Values(atf::Version::kV1, atf::Version::kV2));

TEST_P(SessionRecoveryTest, ResumesAtEveryLengthOfTheLastPages) {
  const uint64_t index_bytes = 64 + 40 * 32;
  const uint64_t detail_bytes = 64 + stream.detail_page(0, 40).bytes.size();
  const uint64_t detail_bytes_before = 64 + stream.detail_page(0, 36).bytes.size();
  const auto expected = stream.expected({}, {});
  const auto resume_and_finish = [&](const std::string& directory, StreamPosition wanted) {
    auto session = Session::resume(fs, options(), directory);
    ASSERT_OK(session);
    const auto positions = (*session)->positions();
    ASSERT_EQ(positions.size(), 1u);
    EXPECT_EQ(positions[0].index_next, wanted.index_next);
    EXPECT_EQ(positions[0].detail_next, wanted.detail_next);
    ASSERT_OK((*session)->open_stream(stream.info()));
    const Page pages[] = {stream.index_page(0, 40), stream.detail_page(0, 40)};
    ASSERT_OK((*session)->append_pages(pages));
    ASSERT_OK((*session)->close_stream(stream.end()));
    ASSERT_OK((*session)->seal(SessionState::kComplete, ""));
    EXPECT_EQ(section_of(directory + "/thread_0/index.atf"), expected.index);
    EXPECT_EQ(section_of(directory + "/thread_0/detail.atf"), expected.detail);
    EXPECT_EQ(manifest_of(directory).totals.lost_events, 0u);
  };
  for (uint64_t bytes = 64 + 31 * 32; bytes <= index_bytes; ++bytes) {
    SCOPED_TRACE("index " + std::to_string(bytes));
    const std::string directory = abandoned();
    cut(directory + "/thread_0/index.atf", bytes);
    resume_and_finish(directory, {1, (bytes - 64) / 32, 40});
  }
  for (uint64_t bytes = detail_bytes_before; bytes <= detail_bytes; ++bytes) {
    SCOPED_TRACE("detail " + std::to_string(bytes));
    const std::string directory = abandoned();
    cut(directory + "/thread_0/detail.atf", bytes);
    uint64_t whole = 36;
    while (whole < 40 && 64 + stream.detail_page(0, whole + 1).bytes.size() <= bytes) ++whole;
    resume_and_finish(directory, {1, 40, whole});
  }
}

TEST_P(SessionRecoveryTest, CountsWhatAPowerLossTookAway) {
  const std::string directory = abandoned();
  cut(directory + "/thread_0/index.atf", 64 + 30 * 32 + 5);
  auto recovered = recover_session(fs, options(), directory);
  ASSERT_OK(recovered);
  EXPECT_EQ(recovered->state, SessionState::kRecovered);
  EXPECT_EQ(recovered->problems.size(), 1u);
  EXPECT_EQ(recovered->totals.events, 30u);
  EXPECT_EQ(recovered->totals.lost_events, 10u);
  EXPECT_EQ(recovered->totals.detail_records, 30u);  // the others' events are gone
  EXPECT_EQ(recovered->totals.lost_detail_records, 10u);
  const Manifest manifest = manifest_of(directory);
  ASSERT_EQ(manifest.gaps.size(), 2u);
  EXPECT_EQ(manifest.gaps[0].reasons, uint32_t(kLostDamaged));
  EXPECT_EQ(manifest.gaps[1].reasons, uint32_t(kLostUnlinked));
  expect_reference_ok(directory);
}

// What went before the first record that is left has no time; what went behind the last has its.
TEST_P(SessionRecoveryTest, DamageHasTheTimeOfTheLastRecord) {
  for (const uint64_t left : {0, 1, 17}) {
    SCOPED_TRACE(left);
    const std::string directory = abandoned();
    cut(directory + "/thread_0/index.atf", 64 + left * 32);
    cut(directory + "/thread_0/detail.atf", 64 + stream.detail_page(0, left).bytes.size());
    ASSERT_OK(recover_session(fs, options(), directory));
    uint64_t last_ns = 0;
    if (left != 0) last_ns = load_le<uint64_t>(&stream.index_bytes()[(left - 1) * 32]);
    const Manifest manifest = manifest_of(directory);
    ASSERT_EQ(manifest.gaps.size(), 2u);
    for (const Gap& gap : manifest.gaps) {
      EXPECT_EQ(gap.before_seq, left);
      EXPECT_EQ(gap.lost, 40 - left);
      EXPECT_EQ(gap.reasons, uint32_t(kLostDamaged));
      EXPECT_EQ(gap.first_ns, last_ns);
      EXPECT_EQ(gap.last_ns, last_ns);
    }
  }
}

TEST_P(SessionRecoveryTest, SaysHowMuchOfBothFilesWasCutOff) {
  const std::string directory = abandoned();
  cut(directory + "/thread_0/index.atf", 64 + 30 * 32 + 5);
  cut(directory + "/thread_0/detail.atf", 64 + stream.detail_page(0, 30).bytes.size() + 7);
  const auto recovered = recover_session(fs, options(), directory);
  ASSERT_OK(recovered);
  ASSERT_EQ(recovered->problems.size(), 1u);
  EXPECT_EQ(recovered->problems[0], "thread_0: 12 bytes behind the last whole record were cut off");
}

TEST_P(SessionRecoveryTest, ZerosBehindTheEndAreNotEvents) {
  // What a file system may leave after a power loss: the length without the bytes.
  const std::string directory = abandoned();
  cut(directory + "/thread_0/index.atf", 64 + 20 * 32);
  cut(directory + "/thread_0/index.atf", 64 + 40 * 32);
  auto recovered = recover_session(fs, options(), directory);
  ASSERT_OK(recovered);
  EXPECT_EQ(recovered->totals.events, 20u);
  EXPECT_EQ(recovered->totals.lost_events, 20u);
  expect_reference_ok(directory);
}

TEST_P(SessionRecoveryTest, WorksWithoutAManifest) {
  for (const bool damaged : {false, true}) {
    const std::string directory = abandoned();
    std::filesystem::remove(directory + "/manifest.json");
    if (damaged) write_file(directory + "/manifest.json", {'{', '"', 't'});
    EXPECT_FALSE(Session::resume(fs, options(), directory).ok());
    auto recovered = recover_session(fs, options(), directory);
    ASSERT_OK(recovered);
    EXPECT_EQ(recovered->totals.events, 40u);
    EXPECT_EQ(recovered->totals.detail_records, 40u);
    const Manifest manifest = manifest_of(directory);
    ASSERT_EQ(manifest.threads.size(), 1u);
    EXPECT_EQ(manifest.threads[0].thread_id, 100u);
    EXPECT_EQ(manifest.threads[0].stream_id, 1u);
    EXPECT_EQ(manifest.threads[0].name, "thread");  // of the stream journal
    EXPECT_EQ(manifest.identity.pid, 4711u);        // of the directory's name
    EXPECT_EQ(manifest.identity.version, GetParam());
    expect_reference_ok(directory);
  }
}

// Any name that it was given.
TEST_P(SessionRecoveryTest, PidIsOfTheDirectorysName) {
  for (const std::string& name : {std::string("pid_12"), std::string("moved")}) {
    const std::filesystem::path directory = abandoned();
    const std::filesystem::path moved = directory.parent_path() / name;
    std::filesystem::rename(directory, moved);
    std::filesystem::remove(moved / "manifest.json");
    ASSERT_OK(recover_session(fs, options(), moved.string()));
    EXPECT_EQ(manifest_of(moved.string()).identity.pid, name == "moved" ? 0u : 12u);
  }
}

TEST_P(SessionRecoveryTest, OneBadThreadDoesNotHideTheOthers) {
  for (const bool known_to_manifest : {true, false}) {
    FakeStream other(GetParam(), 2, 200);
    other.add_many(12);
    auto session = make(GetParam());
    ASSERT_OK(session->open_stream(stream.info()));
    ASSERT_OK(session->open_stream(other.info()));
    const Page pages[] = {stream.index_page(0, 40), other.index_page(0, 12)};
    ASSERT_OK(session->append_pages(pages));
    ASSERT_OK(session->commit());
    const std::string directory = session->directory();
    session.reset();
    // A directory where the file should be: it can be neither read nor made.
    std::filesystem::remove(directory + "/thread_0/index.atf");
    std::filesystem::create_directory(directory + "/thread_0/index.atf");
    if (!known_to_manifest) std::filesystem::remove(directory + "/manifest.json");
    auto recovered = recover_session(fs, options(), directory);
    if (!known_to_manifest && !recovered.ok()) continue;
    ASSERT_OK(recovered);
    EXPECT_EQ(recovered->totals.events, 12u);
    EXPECT_FALSE(recovered->problems.empty());
    EXPECT_EQ(section_of(directory + "/thread_1/index.atf"), other.index_bytes());
    EXPECT_FALSE(manifest_of(directory).notes.empty());
  }
}

TEST_P(SessionRecoveryTest, DamagedHeaderIsWrittenAgain) {
  const std::string directory = abandoned();
  std::vector<uint8_t> bytes = read_file(directory + "/thread_0/index.atf");
  std::fill_n(bytes.begin(), 64, uint8_t(0));
  write_file(directory + "/thread_0/index.atf", bytes);
  auto recovered = recover_session(fs, options(), directory);
  ASSERT_OK(recovered);
  EXPECT_EQ(recovered->totals.events, 40u);
  expect_reference_ok(directory);
}

TEST_P(SessionRecoveryTest, SealedSessionStaysAsItIs) {
  const std::string directory = abandoned();
  ASSERT_OK(recover_session(fs, options(), directory));
  const std::vector<uint8_t> manifest = read_file(directory + "/manifest.json");
  auto resumed = Session::resume(fs, options(), directory);
  ASSERT_FALSE(resumed.ok());
  EXPECT_EQ(resumed.code(), Code::kCancelled);
  write_file(directory + "/reserve.space", {0});  // left by a daemon that ended right there
  write_file(directory + "/thread_0/stream.journal", {0});
  auto again = recover_session(fs, options(), directory);
  ASSERT_OK(again);
  EXPECT_TRUE(again->was_sealed);
  EXPECT_EQ(again->totals.events, 40u);
  EXPECT_EQ(read_file(directory + "/manifest.json"), manifest);
  EXPECT_EQ(*fs.list_directory(directory), (std::vector<std::string>{"manifest.json", "thread_0"}));
  EXPECT_EQ(*fs.list_directory(directory + "/thread_0"),
            (std::vector<std::string>{"detail.atf", "index.atf"}));
}

TEST_P(SessionRecoveryTest, StaleHeaderAndHalfFooter) {
  // The sealing got to some byte of the footer, or to the whole of it without the header.
  const std::string directory = abandoned();
  ASSERT_OK(recover_session(fs, options(), directory));
  const std::vector<uint8_t> sealed = read_file(directory + "/thread_0/index.atf");
  std::vector<uint8_t> unsealed(sealed.begin(), sealed.end() - 64);
  const std::string fresh = abandoned();
  const std::vector<uint8_t> growing = read_file(fresh + "/thread_0/index.atf");
  for (size_t footer_bytes = 0; footer_bytes <= 64; footer_bytes += 8) {
    SCOPED_TRACE(footer_bytes);
    const std::string each = abandoned();
    std::vector<uint8_t> file = growing;
    file.insert(file.end(), sealed.end() - 64, sealed.end() - 64 + long(footer_bytes));
    write_file(each + "/thread_0/index.atf", file);
    auto recovered = recover_session(fs, options(), each);
    ASSERT_OK(recovered);
    EXPECT_EQ(recovered->totals.events, 40u);
    EXPECT_EQ(recovered->totals.lost_events, 0u);
    expect_reference_ok(each);
  }
}

TEST_P(SessionRecoveryTest, TornJournalEntriesAreLeftOut) {
  auto session = make(GetParam());
  ASSERT_OK(session->open_stream(stream.info()));
  ASSERT_OK(append(*session, stream.index_page(0, 10)));
  Page gap = stream.index_page(12, 8);
  ASSERT_OK(append(*session, gap));
  const std::string directory = session->directory();
  session.reset();
  const std::string journal = directory + "/thread_0/stream.journal";
  std::vector<uint8_t> bytes = read_file(journal);
  ASSERT_EQ(bytes.size(), 128u);
  bytes.resize(128 + 37, 0xAA);  // a third entry, torn
  write_file(journal, bytes);
  auto resumed = Session::resume(fs, options(), directory);
  ASSERT_OK(resumed);
  EXPECT_EQ((*resumed)->positions()[0].index_next, 20u);
  EXPECT_EQ((*resumed)->totals().lost_events, 2u);
  EXPECT_EQ(read_file(journal).size(), 128u);
}

TEST_F(SessionTest, KeepsModulesWindowsClocksAndNotesOnce) {
  auto session = make();
  ModuleInfo module;
  module.module_id = 3;
  module.path = std::string(10'000, 'x');
  ASSERT_OK(session->add_modules({&module, 1}));
  ASSERT_OK(session->add_modules({&module, 1}));
  module.unloaded_ns = 99;
  ASSERT_OK(session->add_modules({&module, 1}));
  ASSERT_OK(session->detail_state({"on", 10, 5, 7, "command"}));
  ASSERT_OK(session->detail_state({"on", 10, 5, 7, "command"}));
  ASSERT_OK(session->detail_state({"off", 20, 0, 0, "duration"}));
  ASSERT_OK(session->detail_state({"off", 20, 0, 0, "duration"}));
  ASSERT_OK(session->detail_state({"armed", 30, 0, 0, "command"}));
  for (int i = 0; i < 5000; ++i) {
    ASSERT_OK(session->note("refused \xff"));
    ASSERT_OK(session->clock_sync({uint64_t(i), i, 1, 0.5}));
  }
  session->set_lost_without_stream(4);
  session->set_lost_without_stream(3);
  ASSERT_OK(session->seal(SessionState::kComplete, "done"));
  const Manifest manifest = manifest_of(session->directory());
  ASSERT_EQ(manifest.modules.size(), 1u);
  EXPECT_EQ(manifest.modules[0].path.size(), kMaxTextBytes);
  EXPECT_EQ(manifest.modules[0].unloaded_ns, 99u);
  ASSERT_EQ(manifest.detail_windows.size(), 2u);
  EXPECT_EQ(manifest.detail_windows[0].end_ns, 20u);
  EXPECT_EQ(manifest.detail_windows[0].pre_roll_records, 7u);
  EXPECT_EQ(manifest.detail_windows[1].mode, "armed");
  EXPECT_NE(manifest.detail_windows[1].end_ns, 0u);
  EXPECT_EQ(manifest.notes.size(), kMaxNotes);
  EXPECT_EQ(manifest.notes.size() + manifest.notes_left_out, 5000u);
  EXPECT_LE(manifest.clock_syncs.size(), kMaxClockSyncs);
  EXPECT_EQ(manifest.clock_syncs.front().at_ns, 0u);
  EXPECT_EQ(manifest.clock_syncs.back().at_ns, 4999u);
  EXPECT_EQ(manifest.lost_without_stream, 4u);

  auto limited = make();
  for (uint32_t i = 0; i < kMaxModules; ++i) {
    module.module_id = i;
    module.path = "m";
    ASSERT_OK(limited->add_modules({&module, 1}));
  }
  module.module_id = kMaxModules;
  const Status refused = limited->add_modules({&module, 1});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.code(), Code::kLimit);
}

TEST_F(SessionTest, WritesTheManifestOnceASecondUnlessUrgent) {
  FakeStream events(atf::Version::kV2, 1, 100);
  events.add_many(30);
  auto session = make();
  ASSERT_OK(session->open_stream(events.info()));
  ASSERT_OK(append(*session, events.index_page(0, 1)));
  ASSERT_OK(session->commit());
  const auto events_on_disk = [&] { return manifest_of(session->directory()).totals.events; };
  const uint64_t at_first = events_on_disk();
  ASSERT_OK(append(*session, events.index_page(1, 1)));
  clock.monotonic += 999'999'999;
  ASSERT_OK(session->commit());
  EXPECT_EQ(events_on_disk(), at_first);
  clock.monotonic += 1;
  ASSERT_OK(session->commit());
  EXPECT_EQ(events_on_disk(), 2u);
  ASSERT_OK(append(*session, events.index_page(3, 1)));  // a gap is reported before the ack
  ASSERT_OK(session->commit());
  EXPECT_EQ(events_on_disk(), 3u);
  EXPECT_EQ(manifest_of(session->directory()).gaps.size(), 1u);
}

}  // namespace
}  // namespace collect::storage::test
