// RTC containers beside the thread files: rolled, kept within their budget, and enough to build the
// session again, byte for byte; cut or damaged ones rebuild what holds, and say what is missing.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "formats/core/crc32.h"
#include "formats/rtc/check.h"
#include "formats/rtc/writer.h"
#include "storage/container/capture_layout.h"
#include "storage/container/page_packing.h"
#include "storage/rebuild/capture_replay.h"
#include "tests/storage/busy_session.h"
#include "tests/storage/session_fixture.h"

namespace collect::storage::test {
namespace {

namespace filesystem = std::filesystem;

// A busy session takes several of these.
constexpr uint64_t kSmallContainer = 12'000;

class CaptureTest : public SessionTest {
 protected:
  SessionOptions capturing(uint64_t roll_bytes, uint64_t budget_bytes = 0) {
    SessionOptions with = options();
    with.capture.enabled = true;
    with.capture.roll_bytes = roll_bytes;
    with.capture.budget_bytes = budget_bytes;
    return with;
  }
  std::unique_ptr<Session> begin(const SessionOptions& with,
                                 atf::Version version = atf::Version::kV2) {
    SessionIdentity identity = test_identity(version);
    identity.start_ns = 1000;
    identity.start_unix_ns = 1'800'000'000'000'000'000;
    auto session = Session::create(fs, with, identity);
    EXPECT_TRUE(session.ok()) << to_string(session.error());
    return session.ok() ? std::move(*session) : nullptr;
  }
  static std::vector<std::string> containers_in(const std::string& directory) {
    std::vector<std::string> names;
    for (const auto& entry : filesystem::directory_iterator(directory)) {
      if (entry.path().extension() == ".rtc") names.push_back(entry.path().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  // Builds the session again, from the containers' bytes.
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

  static void expect_same_threads(const std::string& a, const std::string& b) {
    size_t files = 0;
    for (const auto& entry : filesystem::recursive_directory_iterator(a)) {
      if (entry.path().extension() != ".atf") continue;
      ++files;
      const std::string relative = filesystem::relative(entry.path(), a).string();
      EXPECT_EQ(read_file(entry.path().string()), read_file(b + "/" + relative)) << relative;
    }
    EXPECT_GT(files, 0u);
  }
};

TEST_F(CaptureTest, ContainerAloneRebuildsTheSessionByteForByte) {
  for (const atf::Version version : {atf::Version::kV1, atf::Version::kV2}) {
    for (uint32_t seed = 1; seed <= 8; ++seed) {
      auto session = begin(capturing(uint64_t{1} << 30), version);
      ASSERT_TRUE(session);
      ASSERT_OK(BusySession(version, seed).run(*session, clock));
      ASSERT_OK(session->seal(SessionState::kComplete, "exit"));
      const std::string directory = session->directory();
      ASSERT_EQ(containers_in(directory).size(), 1u);

      auto rebuilt = rebuild(directory);
      ASSERT_OK(rebuilt);
      EXPECT_TRUE(rebuilt->missing.empty()) << rebuilt->missing.front().what;
      EXPECT_EQ(rebuilt->state, SessionState::kComplete);
      expect_same_threads(directory, rebuilt->directory);
      Manifest was = manifest_of(directory), is = manifest_of(rebuilt->directory);
      EXPECT_EQ(filesystem::path(directory).filename(),
                filesystem::path(rebuilt->directory).filename());
      was.containers.clear();
      EXPECT_EQ(manifest_to_json(was), manifest_to_json(is));
      filesystem::remove_all(root.path() + "/rebuilt");
    }
  }
}

TEST_F(CaptureTest, RolledContainersRebuildTheSameBytes) {
  auto session = begin(capturing(kSmallContainer));
  ASSERT_OK(BusySession(atf::Version::kV2, 3).run(*session, clock));
  ASSERT_OK(session->seal(SessionState::kComplete, "exit"));
  const std::string directory = session->directory();
  const auto paths = containers_in(directory);
  ASSERT_GT(paths.size(), 3u);
  for (const std::string& path : paths) {
    auto summary = rtc::check_file(read_file(path));
    ASSERT_OK(summary);
    EXPECT_EQ(summary->findings.errors(), 0u) << path;
    EXPECT_EQ(summary->units_with(rtc::CrcState::kIeee), summary->units.size());
  }
  const Manifest manifest = manifest_of(directory);
  ASSERT_EQ(manifest.containers.size(), paths.size());
  uint64_t on_disk = 0;
  for (const std::string& path : paths) on_disk += filesystem::file_size(path);
  EXPECT_EQ(session->totals().container_bytes, on_disk);
  EXPECT_EQ(manifest.totals.container_bytes, on_disk) << "of a session that was found on the disk";
  for (size_t i = 0; i < paths.size(); ++i) {
    EXPECT_EQ(manifest.containers[i].name, filesystem::path(paths[i]).filename());
    EXPECT_EQ(manifest.containers[i].state, "finished");
    EXPECT_EQ(manifest.containers[i].bytes, filesystem::file_size(paths[i]));
  }
  auto rebuilt = rebuild(directory);
  ASSERT_OK(rebuilt);
  expect_same_threads(directory, rebuilt->directory);
}

TEST_F(CaptureTest, FirstContainersReportThatTheEndIsMissing) {
  auto session = begin(capturing(kSmallContainer));
  ASSERT_OK(BusySession(atf::Version::kV2, 3).run(*session, clock));
  ASSERT_OK(session->seal(SessionState::kComplete, "exit"));
  const SessionTotals was = session->totals();
  std::vector<std::vector<uint8_t>> all;
  for (const std::string& path : containers_in(session->directory())) {
    all.push_back(read_file(path));
  }
  ASSERT_GT(all.size(), 3u);
  std::vector<std::vector<uint8_t>> some(all.begin(), all.end() - 2);
  auto rebuilt = rebuild(some);
  ASSERT_OK(rebuilt);
  EXPECT_EQ(rebuilt->state, SessionState::kRecovered);
  ASSERT_EQ(rebuilt->missing.size(), 1u);
  EXPECT_TRUE(rebuilt->missing[0].what.starts_with("the end of the session"));
  EXPECT_EQ(manifest_of(rebuilt->directory).input_missing, rebuilt->missing);
  filesystem::remove_all(root.path() + "/rebuilt");

  // One in the middle: what it held is counted, to the record.
  some = all;
  some.erase(some.begin() + 1);
  rebuilt = rebuild(some);
  ASSERT_OK(rebuilt);
  EXPECT_EQ(rebuilt->state, SessionState::kRecovered);
  ASSERT_FALSE(rebuilt->missing.empty());
  EXPECT_EQ(rebuilt->missing[0].what, "events that were stored and are not in the containers");
  EXPECT_EQ(rebuilt->missing[0].count, was.events - rebuilt->totals.events);
  EXPECT_EQ(rebuilt->totals.events + rebuilt->totals.lost_events, was.events + was.lost_events);
}

TEST_F(CaptureTest, RollsByAgeAndWhenAsked) {
  SessionOptions with = capturing(0);
  with.capture.roll_ns = 10'000'000'000;
  auto session = begin(with);
  FakeStream stream(atf::Version::kV2, 1, 100);
  ASSERT_OK(session->open_stream(stream.info()));
  stream.add_many(30);
  ASSERT_OK(append(*session, stream.index_page(0, 10)));
  clock.monotonic += 9'000'000'000;
  ASSERT_OK(append(*session, stream.index_page(10, 10)));
  EXPECT_EQ(containers_in(session->directory()).size(), 1u);
  clock.monotonic += 1'000'000'000;
  ASSERT_OK(append(*session, stream.index_page(20, 10)));
  EXPECT_EQ(containers_in(session->directory()).size(), 2u);
  const auto rolled = session->roll_container();
  ASSERT_OK(rolled);
  EXPECT_EQ(*rolled, containers_in(session->directory()).back());
  EXPECT_TRUE(rolled->ends_with("/capture-000003.rtc"));
}

TEST_F(CaptureTest, RefusesToRollWithoutContainers) {
  auto session = make();
  const auto rolled = session->roll_container();
  ASSERT_FALSE(rolled.ok());
  EXPECT_EQ(rolled.code(), Code::kUnsupported);
  EXPECT_TRUE(containers_in(session->directory()).empty());
}

TEST_F(CaptureTest, OldestGoWhenTheBudgetIsUsedUp) {
  auto session = begin(capturing(kSmallContainer, 3 * kSmallContainer));
  ASSERT_OK(BusySession(atf::Version::kV2, 5).run(*session, clock));
  ASSERT_OK(session->seal(SessionState::kComplete, "exit"));
  const auto paths = containers_in(session->directory());
  uint64_t bytes = 0;
  for (const std::string& path : paths) bytes += filesystem::file_size(path);
  EXPECT_LE(bytes, 3 * kSmallContainer);
  const Manifest manifest = manifest_of(session->directory());
  EXPECT_EQ(manifest.containers.size(), paths.size());
  EXPECT_GT(manifest.containers_removed, 0u);

  // What the removed ones held is missing from the rebuilt session, to the record.
  auto rebuilt = rebuild(session->directory());
  ASSERT_OK(rebuilt);
  const SessionTotals was = session->totals();
  EXPECT_LT(rebuilt->totals.events, was.events);
  EXPECT_EQ(rebuilt->totals.events + rebuilt->totals.lost_events, was.events + was.lost_events);
  expect_reader_ok(rebuilt->directory);
}

TEST_F(CaptureTest, DamagedContainerRebuildsTheRestAndCountsLosses) {
  auto session = begin(capturing(uint64_t{1} << 30));
  ASSERT_OK(BusySession(atf::Version::kV2, 7).run(*session, clock));
  ASSERT_OK(session->seal(SessionState::kComplete, "exit"));
  const SessionTotals was = session->totals();
  const std::vector<uint8_t> whole = read_file(containers_in(session->directory()).front());

  std::mt19937 random(11);
  for (int round = 0; round < 40; ++round) {
    std::vector<uint8_t> damaged = whole;
    // Behind the first manifest, which says what session this is.
    const size_t at = 8192 + random() % (damaged.size() - 8192);
    if (round % 2 == 0) {
      for (size_t i = at; i < std::min(at + 64, damaged.size()); ++i) damaged[i] ^= 0x5A;
    } else {
      damaged.resize(at);
    }
    auto rebuilt = rebuild({damaged});
    ASSERT_OK(rebuilt);
    EXPECT_LE(rebuilt->totals.events, was.events);
    if (!rebuilt->missing.empty() || rebuilt->totals.events < was.events) {
      EXPECT_EQ(rebuilt->state, SessionState::kRecovered) << "round " << round;
    }
    expect_reader_ok(rebuilt->directory);
    filesystem::remove_all(root.path() + "/rebuilt");
  }
}

// The records that a reader of the container finds in pages that hold.
uint64_t records_in(Bytes container, std::string_view stream) {
  uint64_t records = 0;
  auto reader = rtc::Reader::open(container);
  rtc::Object object;
  while (reader.ok() && reader->next(object)) {
    const Bytes page = object.payload();
    if (object.stream->name != stream || page.size() < sizeof(PageHeader)) continue;
    const PageHeader header = load_le<PageHeader>(page.data());
    Bytes bytes = page.subspan(sizeof header);
    std::vector<uint8_t> unpacked;
    if (header.codec != Codec::kRaw) {
      if (!unpack_page(header, bytes, unpacked)) continue;
      bytes = unpacked;
    }
    if (crc32c(bytes) == header.bytes_crc32c) records += header.record_count;
  }
  return records;
}

bool has_manifest(Bytes container) {
  auto reader = rtc::Reader::open(container);
  rtc::Object object;
  while (reader.ok() && reader->next(object)) {
    const Bytes json = object.payload();
    if (object.stream->name == kManifestStream &&
        manifest_from_json({reinterpret_cast<const char*>(json.data()), json.size()}).ok()) {
      return true;
    }
  }
  return false;
}

TEST_F(CaptureTest, ReadsAContainerByItsLastManifest) {
  for (const atf::Version version : {atf::Version::kV1, atf::Version::kV2}) {
    auto session = begin(capturing(uint64_t{1} << 30), version);
    ASSERT_OK(BusySession(version, 7).run(*session, clock));
    ASSERT_OK(session->seal(SessionState::kComplete, "exit"));
    const SessionTotals was = session->totals();
    const std::vector<uint8_t> whole = read_file(containers_in(session->directory()).front());
    // With a Marker in the middle of the pages: as a copy with small Units has it.
    VectorSink small;
    rtc::WriterOptions options;
    options.geometry = {16384, 4096};
    auto writer = rtc::Writer::create(small, options);
    ASSERT_OK(writer);
    std::map<std::string, uint64_t> ids;
    auto reader = rtc::Reader::open(whole);
    ASSERT_OK(reader);
    rtc::Object object;
    while (reader->next(object)) {
      if (ids.empty()) {
        for (const rtc::StreamInfo* info : reader->streams()) {
          auto id = writer->open_stream(*info);
          ASSERT_OK(id);
          ids[info->name] = *id;
        }
      }
      ASSERT_OK(writer->write(ids[object.stream->name], object.payload()));
    }
    ASSERT_OK(writer->finish());

    size_t some = 0;
    for (size_t at = 1; at < small.bytes().size() - 16384; at += 3001) {
      SCOPED_TRACE(at);
      const Bytes cut = Bytes(small.bytes()).subspan(at);
      auto rebuilt = rebuild({std::vector<uint8_t>(cut.begin(), cut.end())});
      if (!has_manifest(cut)) {
        EXPECT_EQ(rebuilt.code(), Code::kNotFound);
        continue;
      }
      ASSERT_OK(rebuilt);
      EXPECT_EQ(rebuilt->totals.events, records_in(cut, kIndexPagesStream));
      // A record whose event is missing is left out at the seal, and counted.
      EXPECT_LE(rebuilt->totals.detail_records, records_in(cut, kDetailPagesStream));
      EXPECT_GE(rebuilt->totals.detail_records + kPageRecords, records_in(cut, kDetailPagesStream));
      EXPECT_EQ(rebuilt->totals.detail_records + rebuilt->totals.lost_detail_records,
                was.detail_records + was.lost_detail_records);
      EXPECT_EQ(rebuilt->totals.events + rebuilt->totals.lost_events, was.events + was.lost_events);
      EXPECT_EQ(rebuilt->state, SessionState::kRecovered);
      EXPECT_FALSE(rebuilt->missing.empty());
      expect_reader_ok(rebuilt->directory);
      if (rebuilt->totals.events > 0 && rebuilt->totals.events < was.events) ++some;
      filesystem::remove_all(root.path() + "/rebuilt");
    }
    EXPECT_GT(some, 5u);
  }
}

TEST_F(CaptureTest, ReadsAContainerByTheNextOnesManifest) {
  auto session = begin(capturing(kSmallContainer));
  ASSERT_OK(BusySession(atf::Version::kV2, 7).run(*session, clock));
  ASSERT_OK(session->seal(SessionState::kComplete, "exit"));
  std::vector<std::vector<uint8_t>> containers;
  for (const auto& path : containers_in(session->directory()))
    containers.push_back(read_file(path));
  ASSERT_GT(containers.size(), 2u);
  // The first manifest's text is damaged, and the last one is cut off.
  std::vector<uint8_t>& first = containers.front();
  const auto text = std::search(first.begin(), first.end(), std::begin("format_version"),
                                std::prev(std::end("format_version")));
  ASSERT_NE(text, first.end());
  std::fill(text - 1, text + 10, uint8_t{'x'});
  first.resize(first.size() * 2 / 3);
  const uint64_t there = records_in(first, kIndexPagesStream);
  ASSERT_GT(there, 0u);
  uint64_t all = 0;
  for (const auto& container : containers) all += records_in(container, kIndexPagesStream);
  auto rebuilt = rebuild(containers);
  ASSERT_OK(rebuilt);
  EXPECT_EQ(rebuilt->totals.events, all);
  EXPECT_EQ(rebuild({first}).code(), Code::kNotFound);
}

TEST_F(CaptureTest, ContainersOfTwoSessionsAreNotMixed) {
  auto first = begin(capturing(uint64_t{1} << 30));
  ASSERT_OK(BusySession(atf::Version::kV2, 1).run(*first, clock));
  ASSERT_OK(first->seal(SessionState::kComplete, "exit"));
  SessionIdentity other_identity = test_identity();
  other_identity.process_id[0] ^= 1;
  auto second = Session::create(fs, capturing(uint64_t{1} << 30), other_identity);
  ASSERT_OK(second);
  ASSERT_OK(BusySession(atf::Version::kV2, 2).run(**second, clock));
  ASSERT_OK((*second)->seal(SessionState::kComplete, "exit"));

  const auto mixed = rebuild({read_file(containers_in(first->directory()).front()),
                              read_file(containers_in((*second)->directory()).front())});
  ASSERT_FALSE(mixed.ok());
  EXPECT_EQ(mixed.code(), Code::kInvalidArgument);
}

TEST_F(CaptureTest, ResumedSessionContinuesInANewContainer) {
  FakeStream stream(atf::Version::kV2, 1, 100);
  stream.add_many(200);
  std::string directory;
  {
    auto session = begin(capturing(uint64_t{1} << 30));
    ASSERT_OK(session->open_stream(stream.info()));
    ASSERT_OK(append(*session, stream.index_page(0, 100)));
    ASSERT_OK(session->commit());
    directory = session->directory();
  }
  auto session = Session::resume(fs, capturing(uint64_t{1} << 30), directory);
  ASSERT_OK(session);
  ASSERT_OK(append(**session, stream.index_page(100, 100)));
  ASSERT_OK((*session)->close_stream(stream.end()));
  ASSERT_OK((*session)->seal(SessionState::kComplete, "exit"));
  const Manifest manifest = manifest_of(directory);
  ASSERT_EQ(manifest.containers.size(), 2u);
  EXPECT_EQ(manifest.containers[0].state, "unfinished");
  EXPECT_EQ(manifest.containers[1].state, "finished");
  auto rebuilt = rebuild(directory);
  ASSERT_OK(rebuilt);
  EXPECT_EQ(rebuilt->totals.events, 200u);
  expect_same_threads(directory, rebuilt->directory);
}

// A collector that stops in order leaves a whole container and a manifest that counts everything,
// and no seal; the next one continues behind it.
TEST_F(CaptureTest, SuspendedSessionHasWholeContainersAndCanBeResumed) {
  FakeStream stream(atf::Version::kV2, 1, 100);
  stream.add_many(200);
  std::string directory;
  {
    auto session = begin(capturing(uint64_t{1} << 30));
    ASSERT_OK(session->open_stream(stream.info()));
    ASSERT_OK(append(*session, stream.index_page(0, 100)));
    ASSERT_OK(session->suspend("the collector stopped"));
    EXPECT_EQ(session->totals().events, 100u);
    directory = session->directory();
  }
  const Manifest left = manifest_of(directory);
  EXPECT_EQ(left.state, SessionState::kRecording);
  EXPECT_FALSE(left.sealing);
  EXPECT_EQ(left.totals.events, 100u);
  EXPECT_EQ(left.notes.back().what, "the collector stopped");
  EXPECT_TRUE(filesystem::exists(directory + "/" + kReserveFile));
  ASSERT_EQ(left.containers.size(), 1u);
  EXPECT_EQ(left.containers[0].state, "finished");
  const auto summary = rtc::check_file(read_file(directory + "/" + left.containers[0].name));
  ASSERT_OK(summary);
  EXPECT_EQ(summary->findings.errors(), 0u);

  auto session = Session::resume(fs, capturing(uint64_t{1} << 30), directory);
  ASSERT_OK(session);
  ASSERT_EQ((*session)->positions().size(), 1u);
  EXPECT_EQ((*session)->positions()[0].index_next, 100u);
  ASSERT_OK(append(**session, stream.index_page(50, 150)));
  ASSERT_OK((*session)->close_stream(stream.end()));
  ASSERT_OK((*session)->seal(SessionState::kComplete, "exit"));
  const Manifest manifest = manifest_of(directory);
  EXPECT_EQ(manifest.totals.events, 200u);
  EXPECT_EQ(manifest.totals.lost_events, 0u);
  ASSERT_EQ(manifest.containers.size(), 2u);
  EXPECT_EQ(manifest.containers[0].state, "finished");
  auto rebuilt = rebuild(directory);
  ASSERT_OK(rebuilt);
  EXPECT_EQ(rebuilt->totals.events, 200u);
  expect_same_threads(directory, rebuilt->directory);
}

TEST_F(CaptureTest, EmptySessionHasAContainerThatSaysSo) {
  auto session = begin(capturing(uint64_t{1} << 30));
  ASSERT_OK(session->seal(SessionState::kComplete, "exit"));
  auto rebuilt = rebuild(session->directory());
  ASSERT_OK(rebuilt);
  EXPECT_EQ(rebuilt->totals.threads, 0u);
  EXPECT_EQ(rebuilt->state, SessionState::kComplete);
}

TEST_F(CaptureTest, MarkersStandAtTheirTimeSinceTheEpoch) {
  auto session = begin(capturing(uint64_t{1} << 30));
  FakeStream stream(atf::Version::kV2, 1, 100);
  ASSERT_OK(session->open_stream(stream.info()));
  stream.add_many(10);
  ASSERT_OK(append(*session, stream.index_page(0, 10)));
  ASSERT_OK(session->marker({5000, "the door opens"}));
  ASSERT_OK(session->marker({5000, "the door opens"}));  // reported twice
  ASSERT_OK(session->seal(SessionState::kComplete, "exit"));
  ASSERT_EQ(manifest_of(session->directory()).markers.size(), 1u);
  const std::vector<uint8_t> bytes = read_file(containers_in(session->directory()).front());
  auto reader = rtc::Reader::open(bytes);
  ASSERT_OK(reader);
  rtc::Object object;
  int found = 0;
  while (reader->next(object)) {
    if (object.stream->name != "markers") continue;
    const auto annotation = reader->annotation(object);
    ASSERT_OK(annotation);
    EXPECT_EQ(annotation->time_ns, 1'800'000'000'000'004'000);
    EXPECT_EQ(std::string(annotation->body.begin(), annotation->body.end()), "the door opens");
    ++found;
  }
  EXPECT_EQ(found, 1);
}

}  // namespace
}  // namespace collect::storage::test
