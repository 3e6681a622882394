// Sessions that are packed and unpacked: byte for byte, after any interruption; of a session
// that something is missing from, nothing is removed.
#include "storage/packed/pack_session.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <random>

#include "formats/core/crc32.h"
#include "storage/container/packed_lanes.h"
#include "storage/convert/conversions.h"
#include "storage/read/session_files.h"
#include "storage/rebuild/capture_replay.h"
#include "storage/rebuild/session_conversion.h"
#include "tests/storage/busy_session.h"
#include "tests/storage/fault_fs.h"
#include "tests/storage/session_fixture.h"
#include "tests/storage/session_scenario.h"

namespace collect::storage::test {
namespace {

namespace filesystem = std::filesystem;
using Files = std::map<std::string, std::vector<uint8_t>>;  // by path below the session

class PackSessionTest : public SessionTest {
 protected:
  SessionOptions capturing(uint64_t roll_bytes = uint64_t{1} << 30) {
    SessionOptions with = options();
    with.capture.enabled = true;
    with.capture.roll_bytes = roll_bytes;
    return with;
  }
  // Of four threads, without a lost or a linked record.
  std::string record_plain(atf::Version version, const SessionOptions& with) {
    auto session = Session::create(fs, with, test_identity(version));
    EXPECT_OK(session);
    std::vector<FakeStream> streams;
    for (uint32_t i = 0; i < 4; ++i) streams.emplace_back(version, i + 1, 100 + i);
    for (FakeStream& stream : streams) {
      EXPECT_OK((*session)->open_stream(stream.info()));
      stream.add_many(1000);
    }
    for (uint64_t at = 0; at < 1000; at += 250) {
      // The agent comes back, and sends again what was not acknowledged.
      const uint64_t again = at == 500 ? 100 : 0;
      for (FakeStream& stream : streams) {
        EXPECT_OK(append(**session, stream.index_page(at - again, 250 + again)));
      }
    }
    for (FakeStream& stream : streams) EXPECT_OK((*session)->close_stream(stream.end()));
    EXPECT_OK((*session)->seal(SessionState::kComplete, "exit"));
    return (*session)->directory();
  }
  // With pre-roll, gaps and links that the seal made right.
  std::string record_scenario(const SessionOptions& with) {
    Scenario scenario;
    EXPECT_OK(scenario.run(fs, with));
    return scenario.directory;
  }

  static Files files_of(const std::string& directory, const std::string& extension) {
    Files files;
    for (const auto& entry : filesystem::recursive_directory_iterator(directory)) {
      if (entry.path().extension() != extension) continue;
      files[filesystem::relative(entry.path(), directory)] = read_file(entry.path());
    }
    return files;
  }
  // What a reader of the session gets, packed or not.
  static Files read_files(const std::string& directory) {
    Files files;
    const auto trace = read::open_trace(directory);
    EXPECT_OK(trace);
    if (!trace.ok()) return files;
    EXPECT_TRUE(trace->unopened().empty()) << trace->unopened().front();
    for (const read::TraceThread& thread : trace->threads) {
      const auto put = [&](const char* name, Bytes bytes) {
        files[thread_directory_name(thread.n) + "/" + name].assign(bytes.begin(), bytes.end());
      };
      if (!thread.index.bytes().empty()) put(kIndexFile, thread.index.bytes());
      if (thread.detail) put(kDetailFile, thread.detail->bytes());
    }
    return files;
  }
  static Result<PackReport> pack(Fs& files, const std::string& directory) {
    return pack_session(files, *parse_session_directory(directory));
  }
  static Result<PackReport> unpack(Fs& files, const std::string& directory) {
    return unpack_session(files, *parse_session_directory(directory));
  }
  void expect_there_and_back(const std::string& directory) {
    const Files before = files_of(directory, ".atf");
    ASSERT_FALSE(before.empty());
    const auto packed = pack(fs, directory);
    ASSERT_OK(packed);
    EXPECT_EQ(packed->files, before.size());
    EXPECT_TRUE(files_of(directory, ".atf").empty());
    EXPECT_EQ(read_files(directory), before);
    const auto again = pack(fs, directory);
    ASSERT_OK(again);
    EXPECT_EQ(again->files, 0u);
    const auto unpacked = unpack(fs, directory);
    ASSERT_OK(unpacked);
    EXPECT_EQ(unpacked->file_bytes, packed->file_bytes);
    EXPECT_EQ(files_of(directory, ".atf"), before);
    EXPECT_FALSE(filesystem::exists(directory + "/" + kPackedLanesFile));
    const auto nothing = unpack(fs, directory);
    ASSERT_OK(nothing);
    EXPECT_EQ(nothing->files, 0u);
  }
  // Every change of `work` fails once: the session has what it had, and the next call ends it.
  void expect_interruptible(
      const std::function<std::string()>& make,
      const std::function<Result<PackReport>(Fs&, const std::string&)>& work) {
    const std::string first = make();
    FaultFs counting;
    ASSERT_OK(work(counting, first));
    ASSERT_GT(counting.changes(), 5u);
    filesystem::remove_all(filesystem::path(first).parent_path());
    for (uint64_t k = 0; k < counting.changes(); ++k) {
      const std::string directory = make();
      const Files before = read_files(directory);
      FaultFs breaking({.fail_at = k, .crash = true, .short_write = true});
      EXPECT_FALSE(work(breaking, directory).ok()) << k;
      EXPECT_EQ(read_files(directory), before) << k;
      EXPECT_OK(work(fs, directory));
      EXPECT_EQ(read_files(directory), before) << k;
      const bool is_packed = filesystem::exists(directory + "/" + kPackedLanesFile);
      EXPECT_EQ(files_of(directory, ".atf").empty(), is_packed) << k;
      for (const auto& entry : filesystem::recursive_directory_iterator(directory)) {
        EXPECT_NE(entry.path().extension(), ".new") << k << ": " << entry.path();
      }
      filesystem::remove_all(filesystem::path(directory).parent_path());
    }
  }
};

TEST_F(PackSessionTest, FilesComeBackByteForByte) {
  for (const atf::Version version : {atf::Version::kV1, atf::Version::kV2}) {
    for (const uint64_t roll_bytes : {uint64_t{1} << 30, uint64_t{12'000}}) {
      const std::string directory = record_plain(version, capturing(roll_bytes));
      expect_there_and_back(directory);
      EXPECT_EQ(files_of(directory, ".rtc").size(), 1u);
    }
  }
}

TEST_F(PackSessionTest, LinksMadeAtTheSealComeBackToo) {
  const std::string directory = record_scenario(capturing());
  const Manifest before = manifest_of(directory);
  expect_there_and_back(directory);
  const Manifest after = manifest_of(directory);
  ASSERT_EQ(after.containers.size(), 1u);
  EXPECT_EQ(after.containers[0].name, "capture-000002.rtc") << "one that has the files as they are";
  EXPECT_EQ(after.totals.events, before.totals.events);
  expect_reference_ok(directory);
  for (uint32_t seed = 1; seed <= 4; ++seed) {
    auto session = Session::create(fs, capturing(12'000), test_identity());
    ASSERT_OK(session);
    ASSERT_OK(BusySession(atf::Version::kV2, seed).run(**session, clock));
    ASSERT_OK((*session)->seal(SessionState::kComplete, "exit"));
    expect_there_and_back((*session)->directory());
  }
}

TEST_F(PackSessionTest, SessionsWithoutContainersGetOne) {
  const std::string directory = record_scenario(options());
  ASSERT_TRUE(files_of(directory, ".rtc").empty());
  expect_there_and_back(directory);
  EXPECT_EQ(files_of(directory, ".rtc").size(), 1u);
}

TEST_F(PackSessionTest, ContainersOfAPackedSessionRebuildIt) {
  for (const std::string& directory :
       {record_scenario(capturing()), record_plain(atf::Version::kV2, capturing())}) {
    const Files before = files_of(directory, ".atf");
    ASSERT_OK(pack(fs, directory));
    SessionOptions target;
    target.root = root.path() + "/rebuilt";
    CaptureReplay replay(fs, target);
    const Files containers = files_of(directory, ".rtc");
    for (const auto& [name, bytes] : containers) ASSERT_OK(replay.add(name, bytes));
    const auto rebuilt = replay.finish();
    ASSERT_OK(rebuilt);
    EXPECT_EQ(files_of(rebuilt->directory, ".atf"), before);
    filesystem::remove_all(target.root);
  }
}

TEST_F(PackSessionTest, PackedSessionsAreConvertedLikeOthers) {
  const std::string directory = record_scenario(capturing());
  const SessionPath from = *parse_session_directory(directory);
  const auto go = [](uint64_t, uint64_t) { return Status(); };
  const auto of_files = convert_session(fs, options(), from, atf::Version::kV1, go);
  ASSERT_OK(of_files);
  const Files expected = files_of(of_files->session_path.directory, ".atf");
  ASSERT_OK(remove_session(fs, of_files->session_path));
  ASSERT_OK(pack(fs, directory));
  const auto of_packed = convert_session(fs, options(), from, atf::Version::kV1, go);
  ASSERT_OK(of_packed);
  EXPECT_TRUE(of_packed->report.missing.empty()) << of_packed->report.missing.front().what;
  EXPECT_EQ(files_of(of_packed->session_path.directory, ".atf"), expected);
}

TEST_F(PackSessionTest, CopiesOfPackedSessionsHaveFiles) {
  const std::string directory = record_scenario(capturing());
  const Files before = files_of(directory, ".atf");
  ASSERT_OK(pack(fs, directory));
  const auto trace = read::open_trace(directory);
  ASSERT_OK(trace);
  convert::ConvertLog log;
  filesystem::create_directory(root.path() + "/copies");
  const auto copy = convert::copy_session(*trace, root.path() + "/copies", log);
  ASSERT_OK(copy);
  EXPECT_EQ(files_of(*copy, ".atf"), before);
  EXPECT_FALSE(filesystem::exists(*copy + "/" + kPackedLanesFile));
}

// Named as before: by a program, by a person, and by DownloadFile.
TEST_F(PackSessionTest, ThreadsAndFilesKeepTheirNames) {
  const std::string directory = record_scenario(capturing());
  const SessionPath session_path = *parse_session_directory(directory);
  const Files before = files_of(directory, ".atf");
  const auto expect_named = [&](const std::string& name, const std::vector<uint8_t>& bytes) {
    const bool is_index = name.ends_with(kIndexFile);
    const auto file = read::open_trace(directory + "/" + name);
    ASSERT_OK(file);
    EXPECT_EQ(file->kind, is_index ? read::TraceKind::kIndexFile : read::TraceKind::kDetailFile);
    const read::TraceThread& one = file->threads.front();
    EXPECT_TRUE(std::ranges::equal(is_index ? one.index.bytes() : one.detail->bytes(), bytes));
    EXPECT_TRUE(file->manifest.has_value());
    const auto thread = read::open_trace(directory + "/" + name.substr(0, name.find('/')));
    ASSERT_OK(thread);
    EXPECT_EQ(thread->kind, read::TraceKind::kThread);
    EXPECT_EQ(thread->threads.front().n, one.n);
    EXPECT_TRUE(thread->unopened().empty());
    const auto opened = open_session_file(fs, session_path, name);
    ASSERT_OK(opened);
    std::vector<uint8_t> read(bytes.size() + 1);
    const auto got = (*opened)->read_at(0, read);
    ASSERT_OK(got);
    EXPECT_EQ(*got, bytes.size());
    read.pop_back();
    EXPECT_EQ(read, bytes);
  };
  ASSERT_OK(pack(fs, directory));
  for (const auto& [name, bytes] : before) expect_named(name, bytes);
  // With an index.lod of their own.
  filesystem::create_directories(directory + "/thread_0");
  write_file(directory + "/thread_0/" + kLodFile, {1, 2, 3});
  for (const auto& [name, bytes] : before) expect_named(name, bytes);
  EXPECT_EQ(read::open_trace(directory + "/thread_77").code(), Code::kNotFound);
  EXPECT_EQ(read::open_trace(directory + "/thread_77/index.atf").code(), Code::kNotFound);
  EXPECT_EQ(open_session_file(fs, session_path, "thread_77/index.atf").code(), Code::kNotFound);
}

TEST_F(PackSessionTest, DamageBehindItIsFoundAndNothingIsRemoved) {
  const std::string directory = record_plain(atf::Version::kV2, capturing());
  const Files before = files_of(directory, ".atf");
  ASSERT_OK(pack(fs, directory));
  const std::string container = files_of(directory, ".rtc").begin()->first;
  const std::vector<uint8_t> whole = read_file(directory + "/" + container);
  const auto table = PackedLanes::decode(read_file(directory + "/" + kPackedLanesFile));
  ASSERT_OK(table);
  std::vector<uint8_t> damaged = whole;
  const uint64_t page = table->lanes()[1].pieces[0].offset;
  for (uint64_t at = page + 200; at < page + 264; ++at) damaged[at] ^= 0x55;
  write_file(directory + "/" + container, damaged);
  const auto refused = unpack(fs, directory);
  ASSERT_EQ(refused.code(), Code::kDamaged);
  EXPECT_NE(refused.error().message.find(container + ": at "), std::string::npos)
      << refused.error().message;
  EXPECT_TRUE(filesystem::exists(directory + "/" + kPackedLanesFile));
  // A reader gets zeros in its place, which are no events.
  size_t differ = 0;
  for (const auto& [name, bytes] : read_files(directory)) {
    ASSERT_EQ(bytes.size(), before.at(name).size()) << name;
    differ += bytes != before.at(name) ? 1 : 0;
  }
  EXPECT_GT(differ, 0u);
  write_file(directory + "/" + container, whole);
  ASSERT_OK(unpack(fs, directory));
  EXPECT_EQ(files_of(directory, ".atf"), before);
}

TEST_F(PackSessionTest, FilesThatChangedMeanwhileStay) {
  const std::string directory = record_plain(atf::Version::kV2, capturing());
  // Interrupted when the table is there and a file still is.
  for (uint64_t k = 0; !filesystem::exists(directory + "/" + kPackedLanesFile); ++k) {
    FaultFs breaking({.fail_at = k, .lasting = true});
    ASSERT_FALSE(pack(breaking, directory).ok());
  }
  const Files left = files_of(directory, ".atf");
  ASSERT_FALSE(left.empty());
  std::vector<uint8_t> changed = left.begin()->second;
  changed[100] ^= 1;
  write_file(directory + "/" + left.begin()->first, changed);
  EXPECT_EQ(pack(fs, directory).code(), Code::kDamaged);
  EXPECT_EQ(read_file(directory + "/" + left.begin()->first), changed);
}

TEST_F(PackSessionTest, SessionsThatAreNotWholeAreNotPacked) {
  const std::string directory = record_scenario(capturing());
  const Files before = files_of(directory, ".atf");
  const Files containers = files_of(directory, ".rtc");
  const auto expect_refused = [&](const std::string& words) {
    const auto refused = pack(fs, directory);
    ASSERT_FALSE(refused.ok()) << words;
    EXPECT_NE(refused.error().message.find(words), std::string::npos) << refused.error().message;
    EXPECT_EQ(files_of(directory, ".rtc"), containers) << words;
    EXPECT_FALSE(filesystem::exists(directory + "/" + kPackedLanesFile)) << words;
  };
  for (const auto& [name, bytes] : before) {
    const std::string path = directory + "/" + name;
    filesystem::remove(path);
    expect_refused(name + ": is missing");
    std::vector<uint8_t> changed = bytes;
    changed[80] ^= 1;  // of the first record's payload or function
    write_file(path, changed);
    expect_refused(name + ": its checksum does not fit");
    changed = bytes;
    changed.resize(changed.size() - 64);
    write_file(path, changed);
    expect_refused(name + ": it has no footer");
    write_file(path, bytes);
  }
  for (const auto& [name, bytes] : before) filesystem::remove(directory + "/" + name);
  expect_refused("is missing");
  for (const auto& [name, bytes] : before) write_file(directory + "/" + name, bytes);
  expect_there_and_back(directory);
}

TEST_F(PackSessionTest, FilesInThePlaceOfPackedOnesStay) {
  const std::string directory = record_scenario(capturing());
  const Files before = files_of(directory, ".atf");
  ASSERT_OK(pack(fs, directory));
  filesystem::create_directory(directory + "/thread_1");
  const std::string path = directory + "/thread_1/index.atf";
  write_file(path, {});
  EXPECT_EQ(unpack(fs, directory).code(), Code::kDamaged);
  EXPECT_EQ(pack(fs, directory).code(), Code::kDamaged);
  EXPECT_TRUE(filesystem::exists(directory + "/" + kPackedLanesFile));
  filesystem::remove(path);
  ASSERT_OK(unpack(fs, directory));
  EXPECT_EQ(files_of(directory, ".atf"), before);
}

TEST_F(PackSessionTest, TablesWithoutTheirContainerAreDamaged) {
  const std::string directory = record_plain(atf::Version::kV2, capturing());
  ASSERT_OK(pack(fs, directory));
  for (const auto& [name, bytes] : files_of(directory, ".rtc")) {
    filesystem::remove(directory + "/" + name);
  }
  EXPECT_EQ(pack(fs, directory).code(), Code::kDamaged);
  EXPECT_EQ(unpack(fs, directory).code(), Code::kDamaged);
  write_file(directory + "/" + kPackedLanesFile, {1, 2, 3});
  const auto trace = read::open_trace(directory);
  ASSERT_FALSE(trace.ok());
  EXPECT_NE(trace.error().message.find(kPackedLanesFile), std::string::npos);
}

TEST_F(PackSessionTest, OnlySealedSessionsArePacked) {
  auto session = Session::create(fs, capturing(), test_identity());
  ASSERT_OK(session);
  const std::string directory = (*session)->directory();
  EXPECT_EQ(pack(fs, directory).code(), Code::kUnsupported);
  EXPECT_EQ(unpack(fs, directory).code(), Code::kUnsupported);
  EXPECT_EQ(pack(fs, root.path() + "/session_20260101_000000/pid_1").code(), Code::kNotFound);
}

TEST_F(PackSessionTest, CrashesAnywhereLoseNothing) {
  const auto with_links = [this] { return record_scenario(capturing()); };
  const auto plain = [this] { return record_plain(atf::Version::kV2, capturing(12'000)); };
  expect_interruptible(with_links, pack);
  expect_interruptible(plain, pack);
  expect_interruptible(
      [&] {
        const std::string directory = plain();
        EXPECT_OK(pack(fs, directory));
        return directory;
      },
      unpack);
}

TEST_F(PackSessionTest, FullDisksLeaveItAsItWas) {
  const std::string directory = record_plain(atf::Version::kV2, capturing());
  ASSERT_OK(pack(fs, directory));
  const Files before = read_files(directory);
  FaultFs full({.capacity = 40'000});
  EXPECT_EQ(unpack(full, directory).code(), Code::kNoSpace);
  EXPECT_EQ(read_files(directory), before);
  ASSERT_OK(unpack(fs, directory));
  EXPECT_EQ(files_of(directory, ".atf"), before);
}

TEST_F(PackSessionTest, TablesThatWereChangedAreRefused) {
  const std::string directory = record_plain(atf::Version::kV2, capturing());
  ASSERT_OK(pack(fs, directory));
  const std::vector<uint8_t> table = read_file(directory + "/" + kPackedLanesFile);
  ASSERT_TRUE(PackedLanes::decode(table).ok());
  for (size_t bytes = 0; bytes < table.size(); ++bytes) {
    EXPECT_FALSE(PackedLanes::decode(Bytes(table).first(bytes)).ok()) << bytes;
  }
  for (size_t at = 0; at < table.size(); ++at) {
    std::vector<uint8_t> changed = table;
    changed[at] ^= 0x10;
    EXPECT_FALSE(PackedLanes::decode(changed).ok()) << at;
  }
}

// With its checksum made right, a table may say anything: that is read within its bounds.
TEST_F(PackSessionTest, WrongTablesReadWithinBounds) {
  const std::string directory = record_plain(atf::Version::kV2, capturing());
  ASSERT_OK(pack(fs, directory));
  const std::vector<uint8_t> table = read_file(directory + "/" + kPackedLanesFile);
  constexpr size_t kHeadBytes = 32;
  std::mt19937 random(7);
  size_t read = 0;
  for (int round = 0; round < 2000; ++round) {
    std::vector<uint8_t> changed = table;
    for (int flips = 0; flips < 1 + round % 3; ++flips) {
      changed[kHeadBytes + random() % (changed.size() - kHeadBytes)] ^= uint8_t(1 << random() % 8);
    }
    store_le(changed.data() + 24, crc32c(Bytes(changed).subspan(kHeadBytes)));
    const auto lanes = PackedLanes::decode(changed);
    if (!lanes.ok()) continue;
    ++read;
    std::vector<uint8_t> bytes;
    for (const PackedLane& lane : lanes->lanes()) {
      bytes.resize(lane.file_bytes);
      (void)read_packed(lane, 0, bytes, containers_of(fs, directory));
    }
  }
  EXPECT_GT(read, 100u);
}

}  // namespace
}  // namespace collect::storage::test
