#include "tests/storage/found_states.h"

#include <functional>

#include "tests/fakes/dial9_stream.h"
#include "tests/storage/power_loss_fs.h"
#include "tests/storage/session_scenario.h"

namespace collect::storage::test {
namespace {

namespace filesystem = std::filesystem;
constexpr uint64_t kEvents = 40;

void clear(const std::string& root) {
  for (const auto& entry : filesystem::directory_iterator(root)) {
    filesystem::remove_all(entry.path());
  }
}

SessionOptions options_below(const std::string& root) {
  SessionOptions options;
  options.root = root;
  options.symbolize = false;
  return options;
}

FakeStream recorded_stream() {
  FakeStream stream(atf::Version::kV2, 1, 100);
  stream.add_many(kEvents, FakeStream::Detail::kLinked);
  return stream;
}

// A recording of 40 events, each with a detail record, whose daemon is gone.
std::string left_recording(const std::string& root) {
  PosixFs fs;
  FakeStream stream = recorded_stream();
  auto session = Session::create(fs, options_below(root), test_identity());
  COLLECT_CHECK(session.ok());
  COLLECT_CHECK((*session)->open_stream(stream.info()).ok());
  const Page pages[] = {stream.index_page(0, kEvents), stream.detail_page(0, kEvents)};
  COLLECT_CHECK((*session)->append_pages(pages).ok());
  COLLECT_CHECK((*session)->marker({1, "a marker makes the manifest urgent"}).ok());
  COLLECT_CHECK((*session)->detail_state({"on", 1, 0, 0, "command"}).ok());
  COLLECT_CHECK((*session)->commit().ok());
  return (*session)->directory();
}

std::string sealed_recording(const std::string& root) {
  const std::string directory = left_recording(root);
  PosixFs fs;
  auto session = Session::resume(fs, options_below(root), directory);
  COLLECT_CHECK(session.ok() && (*session)->seal(SessionState::kComplete, "done").ok());
  return directory;
}

void change_file(const std::string& path,
                 const std::function<void(std::vector<uint8_t>&)>& change) {
  std::vector<uint8_t> bytes = read_file(path);
  change(bytes);
  write_file(path, bytes);
}

// The scenario of the fault tests, killed in its seal: right behind the manifest that says how it
// is to end, `later` changes on.
std::string killed_in_its_seal(const std::string& root, uint64_t later) {
  PosixFs fs;
  // In the same place each time: the levels above it are changes too.
  const auto killed_at = [&root](uint64_t fail_at, Scenario& scenario) {
    clear(root);
    FaultFs dying({.fail_at = fail_at, .crash = true});
    COLLECT_CHECK(!scenario.run(dying, options_below(root)).ok());
    scenario.session.reset();
  };
  for (uint64_t first = 0;; ++first) {
    Scenario scenario;
    killed_at(first, scenario);
    const auto manifest = read_manifest(fs, scenario.directory);
    if (!manifest.ok() || !manifest->sealing) continue;
    if (later == 0) return scenario.directory;
    Scenario further;
    killed_at(first + later, further);
    return further.directory;
  }
}

// The links of the index file are being replaced: one sector has the new ones, one the old.
std::string power_lost_while_links_were_replaced(const std::string& root) {
  SessionOptions with = options_below(root);
  with.durability = Durability::kFsync;
  FakeStream stream(atf::Version::kV2, 1, 100);
  stream.add_many(64, FakeStream::Detail::kPreRoll);  // no link forward; all are set at the seal
  stream.add_many(64, FakeStream::Detail::kLinked);
  for (uint64_t fail_at = 0;; ++fail_at) {
    clear(root);
    FaultFs process({.fail_at = fail_at, .crash = true});
    PowerLossFs disk(process, root);
    auto session = Session::create(disk, with, test_identity());
    if (!session.ok() || !(*session)->open_stream(stream.info()).ok()) continue;
    const std::string directory = (*session)->directory();
    const std::string index = directory + "/thread_0/index.atf";
    Page after_gap = stream.index_page(2, 126);  // so that numbers and places differ
    after_gap.lost_reasons = kLostOverwritten;
    const Page pages[] = {after_gap, stream.detail_page(0, 64, true), stream.detail_page(64, 64)};
    if (!(*session)->append_pages(pages).ok() || !(*session)->commit().ok()) continue;
    const std::vector<uint8_t> before = read_file(index);
    COLLECT_CHECK(!(*session)->seal(SessionState::kComplete, "done").ok());
    session->reset();
    std::vector<uint8_t> after = read_file(index);
    if (after == before || after.size() != before.size()) continue;
    disk.lose_power(Kept::kEverything);
    std::copy(before.begin() + 2048, before.begin() + 2560, after.begin() + 2048);
    write_file(index, after);
    return directory;
  }
}

std::string dial9_recording(const std::string& root, bool with_manifest) {
  PosixFs fs;
  SessionIdentity identity = test_identity();
  identity.process_name = "service";
  auto session = Session::create(fs, options_below(root), identity);
  COLLECT_CHECK(session.ok());
  const Bytes chunk(fakes::kDial9Example);
  COLLECT_CHECK((*session)->append_passthrough(PassthroughKind::kDial9, {&chunk, 1}).ok());
  COLLECT_CHECK((*session)->commit().ok());
  const std::string directory = (*session)->directory();
  session->reset();
  filesystem::resize_file(directory + "/stream.dial9", fakes::kDial9Example.size() - 2);
  if (!with_manifest) filesystem::remove(directory + "/manifest.json");
  return directory;
}

void expect_cut_dial9(const std::string& directory, const Manifest& manifest) {
  ASSERT_EQ(manifest.passthrough_streams.size(), 1u);
  const uint64_t whole = fakes::kDial9ExampleFrameEnds[2];
  EXPECT_EQ(filesystem::file_size(directory + "/stream.dial9"), whole);
  EXPECT_EQ(manifest.passthrough_streams[0].bytes, whole);
  EXPECT_EQ(manifest.passthrough_streams[0].refused_bytes, fakes::kDial9Example.size() - 2 - whole);
  EXPECT_FALSE(manifest.passthrough_streams[0].problem.empty());
}

std::string bad_thread(const std::string& root) {
  PosixFs fs;
  FakeStream stream = recorded_stream();
  const std::string directory = left_recording(root);
  auto session = Session::resume(fs, options_below(root), directory);
  FakeStream other(atf::Version::kV2, 2, 200);
  other.add_many(10);
  COLLECT_CHECK(session.ok() && (*session)->open_stream(other.info()).ok());
  const Page page = other.index_page(0, 10);
  COLLECT_CHECK((*session)->append_pages({&page, 1}).ok() && (*session)->commit().ok());
  session->reset();
  filesystem::remove(directory + "/thread_1/index.atf");
  filesystem::create_directory(directory + "/thread_1/index.atf");
  return directory;
}

// A gap and the page behind it: the journal was synced, the page was not, and the power went.
std::string gap_without_its_page(const std::string& root) {
  SessionOptions with = options_below(root);
  with.durability = Durability::kFsync;
  PosixFs real;
  PowerLossFs disk(real, root);
  FakeStream stream = recorded_stream();
  auto session = Session::create(disk, with, test_identity());
  COLLECT_CHECK(session.ok() && (*session)->open_stream(stream.info()).ok());
  const Page first = stream.index_page(0, 10);
  COLLECT_CHECK((*session)->append_pages({&first, 1}).ok() && (*session)->commit().ok());
  Page then[] = {stream.index_page(10, 5), stream.index_page(18, 5)};
  then[1].lost_reasons = kLostOverwritten;
  COLLECT_CHECK((*session)->append_pages(then).ok());
  const std::string directory = (*session)->directory();
  session->reset();
  disk.lose_power(Kept::kSynced);
  return directory;
}

std::string with_containers(const std::string& root) {
  SessionOptions with = options_below(root);
  with.capture.enabled = true;
  PosixFs fs;
  FakeStream stream = recorded_stream();
  auto session = Session::create(fs, with, test_identity());
  COLLECT_CHECK(session.ok() && (*session)->open_stream(stream.info()).ok());
  for (uint64_t at = 0; at < kEvents; at += 10) {
    const Page page = stream.index_page(at, 10);
    COLLECT_CHECK((*session)->append_pages({&page, 1}).ok());
    COLLECT_CHECK((*session)->roll_container().ok() && (*session)->commit().ok());
  }
  const std::string directory = (*session)->directory();
  session->reset();
  filesystem::remove(directory + "/" + container_name(1));  // for the budget, before the manifest
  return directory;
}

constexpr SessionState kComplete = SessionState::kComplete;
using AddState = std::function<void(const FoundState&)>;

void add_recordings(const AddState& add) {
  add({.row = "SealedWithLeftovers",
       .make =
           [](const std::string& root) {
             const std::string directory = sealed_recording(root);
             write_file(directory + "/reserve.space", {0});
             write_file(directory + "/manifest.json.new", {'{'});
             write_file(directory + "/thread_0/stream.journal", {0});
             return directory;
           },
       .state = kComplete,
       .events = kEvents,
       .detail_records = kEvents});
  add({.row = "Recording", .make = left_recording, .events = kEvents, .detail_records = kEvents});
  add({.row = "RecordingCutShort",
       .make =
           [](const std::string& root) {
             const std::string directory = left_recording(root);
             filesystem::resize_file(directory + "/thread_0/index.atf", 64 + 32 * 30 + 5);
             return directory;
           },
       .events = 30,
       .lost_events = 10,
       .detail_records = 30,
       .has_problems = true});
  add({.row = "RecordingWithoutWhatTheCacheHad",
       .make =
           [](const std::string& root) {
             const std::string directory = left_recording(root);
             change_file(directory + "/thread_0/index.atf", [](std::vector<uint8_t>& bytes) {
               std::fill(bytes.begin() + 64 + 32 * 20, bytes.end(), uint8_t(0));
             });
             return directory;
           },
       .events = 20,
       .lost_events = 20,
       .detail_records = 20,
       .has_problems = true});
}

void add_interrupted_seals(const AddState& add) {
  // Two threads; 3 events overwritten and 2 dropped; 3 detail records without their events.
  for (const uint64_t later : {0, 2, 4, 6, 9}) {
    static std::string (*const kMakers[])(const std::string&) = {
        [](const std::string& root) { return killed_in_its_seal(root, 0); },
        [](const std::string& root) { return killed_in_its_seal(root, 2); },
        [](const std::string& root) { return killed_in_its_seal(root, 4); },
        [](const std::string& root) { return killed_in_its_seal(root, 6); },
        [](const std::string& root) { return killed_in_its_seal(root, 9); }};
    static const char* const kNames[] = {"SealingBegun", "SealingTwoChangesOn",
                                         "SealingFourChangesOn", "SealingSixChangesOn",
                                         "SealingNineChangesOn"};
    const size_t which = later == 9 ? 4 : later / 2;
    add({.row = kNames[which],
         .make = kMakers[which],
         .state = kComplete,
         .events = 28,
         .lost_events = 5,
         .detail_records = 24});
  }
  add({.row = "SealingWithLinksHalfReplaced",
       .make = power_lost_while_links_were_replaced,
       .state = kComplete,
       .events = 126,
       .lost_events = 2,
       .detail_records = 126});
}

void add_damaged_records(const AddState& add) {
  add({.row = "NoManifest",
       .make =
           [](const std::string& root) {
             const std::string directory = left_recording(root);
             filesystem::remove(directory + "/manifest.json");
             return directory;
           },
       .events = kEvents,
       .detail_records = kEvents,
       .has_problems = true,
       .check =
           [](const std::string&, const Manifest& manifest) {
             ASSERT_EQ(manifest.threads.size(), 1u);
             EXPECT_EQ(manifest.threads[0].name, "thread");  // of the journal
             EXPECT_EQ(manifest.identity.pid, 4711u);        // of the directory's name
           }});
  add({.row = "DamagedManifest",
       .make =
           [](const std::string& root) {
             const std::string directory = left_recording(root);
             filesystem::resize_file(directory + "/manifest.json", 0);
             return directory;
           },
       .events = kEvents,
       .detail_records = kEvents,
       .has_problems = true});
  add({.row = "IndexHeaderDamaged",
       .make =
           [](const std::string& root) {
             const std::string directory = left_recording(root);
             change_file(directory + "/thread_0/index.atf", [](std::vector<uint8_t>& bytes) {
               std::fill_n(bytes.begin(), 64, uint8_t(0));
             });
             return directory;
           },
       .events = kEvents,
       .detail_records = kEvents});
  add({.row = "HalfAFooter",
       .make =
           [](const std::string& root) {
             const std::string directory = left_recording(root);
             TemporaryDirectory elsewhere;
             const auto sealed =
                 read_file(sealed_recording(elsewhere.path()) + "/thread_0/index.atf");
             change_file(directory + "/thread_0/index.atf", [&](std::vector<uint8_t>& bytes) {
               bytes.insert(bytes.end(), sealed.end() - 64, sealed.end() - 30);
             });
             return directory;
           },
       .events = kEvents,
       .detail_records = kEvents,
       .has_problems = true});
}

void add_damaged_threads(const AddState& add) {
  add({.row = "AThreadThatCannotBeRead",
       .make = bad_thread,
       .events = kEvents,
       .detail_records = kEvents,
       .has_problems = true,
       .check = [](const std::string&, const Manifest& manifest) {
         EXPECT_FALSE(manifest.notes.empty());
       }});
  add({.row = "AThreadWithoutAWholeHeader",
       .make =
           [](const std::string& root) {
             const std::string directory = left_recording(root);
             filesystem::create_directory(directory + "/thread_1");
             write_file(directory + "/thread_1/stream.journal", std::vector<uint8_t>(64));
             write_file(directory + "/thread_1/index.atf", std::vector<uint8_t>(63));
             return directory;
           },
       .events = kEvents,
       .detail_records = kEvents,
       .check =
           [](const std::string& directory, const Manifest& manifest) {
             EXPECT_FALSE(filesystem::exists(directory + "/thread_1"));
             EXPECT_EQ(manifest.threads.size(), 1u);
           }});
  add({.row = "AThreadThatTheManifestNamesWithoutItsFiles",
       .make =
           [](const std::string& root) {
             PosixFs fs;
             const std::string directory = left_recording(root);
             auto session = Session::resume(fs, options_below(root), directory);
             FakeStream other(atf::Version::kV2, 2, 200);
             COLLECT_CHECK(session.ok() && (*session)->open_stream(other.info()).ok());
             COLLECT_CHECK((*session)->commit().ok());
             session->reset();
             filesystem::remove_all(directory + "/thread_1");
             return directory;
           },
       .events = kEvents,
       .detail_records = kEvents,
       .check =
           [](const std::string&, const Manifest& manifest) {
             ASSERT_EQ(manifest.threads.size(), 2u);
             EXPECT_EQ(manifest.threads[1].events, 0u);
           }});
  add({.row = "AGapWhosePageIsGone",
       .make = gap_without_its_page,
       .events = 10,
       .check = [](const std::string&, const Manifest& manifest) {
         EXPECT_TRUE(manifest.gaps.empty());
       }});
  add({.row = "ADetailFileHalfReplaced",
       .make =
           [](const std::string& root) {
             const std::string directory = left_recording(root);
             write_file(directory + "/thread_0/detail.atf.new", std::vector<uint8_t>(1000, 7));
             return directory;
           },
       .events = kEvents,
       .detail_records = kEvents});
}

void add_damaged_containers_and_streams(const AddState& add) {
  add({.row = "ContainersOpenAndMissing",
       .make = with_containers,
       .events = kEvents,
       .check = [](const std::string&, const Manifest& manifest) {
         EXPECT_EQ(manifest.containers_removed, 1u);
         ASSERT_EQ(manifest.containers.size(), 4u);
         EXPECT_EQ(manifest.containers[0].state, "finished");
         EXPECT_EQ(manifest.containers[3].state, "unfinished");
       }});
  add({.row = "Dial9WithoutAWholeFrameAtItsEnd",
       .make = [](const std::string& root) { return dial9_recording(root, true); },
       .has_problems = true,
       .check = expect_cut_dial9});
  add({.row = "Dial9WithoutAManifest",
       .make = [](const std::string& root) { return dial9_recording(root, false); },
       .has_problems = true,
       .seen_offline = false,
       .check =
           [](const std::string& directory, const Manifest& manifest) {
             expect_cut_dial9(directory, manifest);
             EXPECT_EQ(manifest.identity.process_name, "dial9");
           }});
  add({.row = "NothingWasRecorded",
       .make =
           [](const std::string& root) {
             for (uint64_t fail_at = 0;; ++fail_at) {  // between its directory and a manifest
               FaultFs dying({.fail_at = fail_at, .crash = true});
               Scenario scenario;
               COLLECT_CHECK(!scenario.run(dying, options_below(root)).ok());
               PosixFs fs;
               const auto places = list_sessions(fs, root);
               if (places.ok() && places->size() == 1) return places->front().directory;
               clear(root);
             }
           },
       .removed = true});
}

std::vector<FoundState> make_states() {
  std::vector<FoundState> states;
  for (const auto add_some : {add_recordings, add_interrupted_seals, add_damaged_records,
                              add_damaged_threads, add_damaged_containers_and_streams}) {
    add_some([&states](const FoundState& state) { states.push_back(state); });
  }
  return states;
}

}  // namespace

const std::vector<FoundState>& found_states() {
  static const std::vector<FoundState> states = make_states();
  return states;
}

void expect_recovered_as(const FoundState& found, const std::string& directory) {
  if (found.removed) {
    EXPECT_FALSE(filesystem::exists(directory));
    EXPECT_FALSE(filesystem::exists(filesystem::path(directory).parent_path()));
    return;
  }
  PosixFs fs;
  const auto manifest = read_manifest(fs, directory);
  ASSERT_OK(manifest);
  EXPECT_EQ(manifest->state, found.state);
  EXPECT_EQ(manifest->totals.events, found.events);
  EXPECT_EQ(manifest->totals.lost_events, found.lost_events);
  EXPECT_EQ(manifest->totals.detail_records, found.detail_records);
  EXPECT_FALSE(manifest->sealing);
  for (const auto& entry : filesystem::recursive_directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    // A thread that cannot be read is left as it is.
    if (filesystem::is_directory(entry.path().parent_path() / kIndexFile)) continue;
    EXPECT_FALSE(name == kReserveFile || name == kStreamJournalFile || name.ends_with(".new"))
        << entry.path();
  }
  bool all_readable = true;
  for (const ManifestThread& thread : manifest->threads) {
    all_readable &= filesystem::is_regular_file(directory + "/" + thread_directory_name(thread.id) +
                                                "/" + kIndexFile);
  }
  if (all_readable) expect_reference_ok(directory);
  if (found.check != nullptr) found.check(directory, *manifest);
}

}  // namespace collect::storage::test
