// A sealed session in the other ATF version: there and back byte for byte, whole or not at all
// with any fault of the disk, and what cannot be read counted.
#include "storage/rebuild/session_conversion.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>

#include "storage/model/session_files.h"
#include "tests/fakes/dial9_stream.h"
#include "tests/storage/session_scenario.h"

namespace collect::storage::test {
namespace {

namespace filesystem = std::filesystem;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr uint64_t kIndexOfOne = 22 - 3;  // events of the scenario's first thread, less those lost

Status goes_on(uint64_t, uint64_t) {
  return {};
}

class SessionConversionTest : public ScenarioTest {
 protected:
  SessionConversionTest() {
    EXPECT_OK(recorded.run(fs, options()));
    first = session_path_of(recorded.directory);
    before = files_of(first.directory);
  }

  SessionPath session_path_of(const std::string& directory) {
    const auto session_path =
        parse_session_path(root.path(), filesystem::relative(directory, root.path()).string());
    EXPECT_TRUE(session_path) << directory;
    return session_path.value_or(SessionPath{});
  }
  Result<MadeSession> convert(Fs& with, const SessionPath& from, atf::Version version,
                              const MakingProgress& progress = goes_on) {
    return convert_session(with, options(), from, version, progress);
  }
  Result<MadeSession> convert(atf::Version version) { return convert(fs, first, version); }

  // Path and bytes of everything below.
  static std::map<std::string, std::vector<uint8_t>> files_of(const std::string& directory) {
    std::map<std::string, std::vector<uint8_t>> files;
    for (const auto& entry : filesystem::recursive_directory_iterator(directory)) {
      if (!entry.is_regular_file()) continue;
      files[filesystem::relative(entry.path(), directory).string()] = read_file(entry.path());
    }
    return files;
  }
  std::vector<std::string> names_in_root() {
    std::vector<std::string> names;
    for (const auto& entry : filesystem::directory_iterator(root.path())) {
      names.push_back(entry.path().filename());
    }
    return names;
  }
  void expect_nothing_happened() {
    EXPECT_EQ(names_in_root(), std::vector<std::string>{first.session});
    EXPECT_EQ(files_of(first.directory), before);
  }
  static void expect_same_threads(const std::string& a, const std::string& b) {
    size_t count = 0;
    for (const auto& [path, bytes] : files_of(a)) {
      if (!path.ends_with(".atf")) continue;
      ++count;
      EXPECT_EQ(bytes, read_file(b + "/" + path)) << path;
    }
    EXPECT_EQ(count, 4u);
  }

  Scenario recorded;
  SessionPath first;
  std::map<std::string, std::vector<uint8_t>> before;
};

TEST_F(SessionConversionTest, ThereAndBackIsByteForByte) {
  const auto one = convert(atf::Version::kV1);
  ASSERT_OK(one);
  EXPECT_EQ(one->session_path.name, first.session + "_atf1/pid_4711");
  EXPECT_THAT(names_in_root(), UnorderedElementsAre(first.session, one->session_path.session));
  EXPECT_EQ(files_of(first.directory), before);
  expect_reference_ok(one->session_path.directory);
  EXPECT_EQ(read_file(one->session_path.directory + "/thread_0/index.atf")[5], 1);
  EXPECT_EQ(read_file(one->session_path.directory + "/thread_1/detail.atf")[5], 1);
  EXPECT_TRUE(one->report.missing.empty());
  EXPECT_TRUE(one->report.left_out.empty());

  const Manifest was = manifest_of(first.directory), is = manifest_of(one->session_path.directory);
  EXPECT_EQ(is.state, SessionState::kComplete);
  EXPECT_EQ(is.reason, "done");
  EXPECT_EQ(is.identity.version, atf::Version::kV1);
  EXPECT_EQ(is.identity.process_id, was.identity.process_id);
  EXPECT_EQ(is.created_unix_ns, was.created_unix_ns);
  EXPECT_EQ(is.totals.events, was.totals.events);
  EXPECT_EQ(is.totals.detail_records, was.totals.detail_records);
  EXPECT_EQ(is.totals.lost_events, was.totals.lost_events);
  ASSERT_EQ(is.gaps.size(), was.gaps.size());
  for (size_t i = 0; i < is.gaps.size(); ++i) {
    EXPECT_EQ(is.gaps[i].before_seq, was.gaps[i].before_seq);
    EXPECT_EQ(is.gaps[i].lost, was.gaps[i].lost);
    EXPECT_EQ(is.gaps[i].reasons, was.gaps[i].reasons);
  }
  EXPECT_TRUE(is.containers.empty());

  const auto two = convert(fs, one->session_path, atf::Version::kV2);
  ASSERT_OK(two);
  EXPECT_EQ(two->session_path.name, first.session + "_atf2/pid_4711");
  EXPECT_TRUE(two->report.left_out.empty());
  expect_same_threads(first.directory, two->session_path.directory);
  // The first comes before those that were made of it.
  EXPECT_EQ(list_sessions_of(root.path()),
            (std::vector<std::string>{first.name, one->session_path.name, two->session_path.name}));
}

// Every event as an ATF reader has it, with thread and depth as the specification wants them.
TEST_F(SessionConversionTest, Version1HasThreadAndDepthInEachEvent) {
  const auto one = convert(atf::Version::kV1);
  ASSERT_OK(one);
  const auto index = read_file(one->session_path.directory + "/thread_0/index.atf");
  const auto sections = recorded.expected_one();
  ASSERT_EQ(index.size(), 64 + kIndexOfOne * atf::kEventBytes + 64);
  uint32_t depth = 0;
  for (size_t i = 0; i < kIndexOfOne; ++i) {
    const auto event = load_le<atf::IndexEventV1>(&index[64 + i * atf::kEventBytes]);
    const auto was = load_le<atf::IndexEventV2>(&sections.index[i * atf::kEventBytes]);
    EXPECT_EQ(event.timestamp_ns, was.timestamp_ns);
    EXPECT_EQ(event.function_id, was.function_id);
    EXPECT_EQ(event.event_kind, was.event_kind);
    EXPECT_EQ(event.thread_id, 100u);
    EXPECT_EQ(event.detail_seq,
              was.detail_seq == atf::kNoDetail ? atf::kNoDetailV1 : was.detail_seq);
    if (event.event_kind == 1) ++depth;
    EXPECT_EQ(event.call_depth, depth) << i;
    if (event.event_kind != 1 && depth != 0) --depth;
  }
}

TEST_F(SessionConversionTest, ExplainsRefusedConversions) {
  const auto again = convert(atf::Version::kV2);
  EXPECT_EQ(again.code(), Code::kUnsupported);
  EXPECT_THAT(again.error().message, HasSubstr("has ATF version 2 already"));
  SessionPath other = *parse_session_path(root.path(), "session_20000101_000000/pid_1");
  EXPECT_EQ(convert(fs, other, atf::Version::kV1).code(), Code::kNotFound);
  expect_nothing_happened();

  auto recording = make();
  const auto open = convert(fs, session_path_of(recording->directory()), atf::Version::kV1);
  EXPECT_EQ(open.code(), Code::kUnsupported);
  EXPECT_THAT(open.error().message, HasSubstr("is not sealed yet"));

  ASSERT_OK(convert(atf::Version::kV1));
  const auto twice = convert(atf::Version::kV1);
  EXPECT_EQ(twice.code(), Code::kAlreadyExists);
  EXPECT_THAT(twice.error().message, HasSubstr(first.session + "_atf1/pid_4711 is there already"));
}

TEST_F(SessionConversionTest, StreamOfAnotherFormatHasNoVersion) {
  auto feed = make();
  const std::vector<uint8_t> bytes = fakes::dial9_stream(1, 100);
  const Bytes part = bytes;
  ASSERT_OK(feed->append_passthrough(PassthroughKind::kDial9, {&part, 1}));
  ASSERT_OK(feed->seal(SessionState::kComplete, "end"));
  const auto refused = convert(fs, session_path_of(feed->directory()), atf::Version::kV1);
  EXPECT_EQ(refused.code(), Code::kUnsupported);
  EXPECT_THAT(refused.error().message, HasSubstr("stream of dial9"));
}

TEST_F(SessionConversionTest, RoomIsAskedForBeforeAnythingIsWritten) {
  FaultFs full;
  SessionOptions with = options();
  const uint64_t stored = manifest_of(first.directory).totals.stored_bytes;
  full.free_bytes = with.keep_free_bytes + stored - 1;
  EXPECT_EQ(convert(full, first, atf::Version::kV1).code(), Code::kNoSpace);
  full.free_bytes = UINT64_MAX;
  full.free_files = with.keep_free_files + kFilesPerSession + 2 * kFilesPerThread - 1;
  EXPECT_EQ(convert(full, first, atf::Version::kV1).code(), Code::kNoSpace);
  with.max_session_bytes = stored - 1;
  EXPECT_EQ(convert_session(fs, with, first, atf::Version::kV1, goes_on).code(), Code::kLimit);
  EXPECT_EQ(full.changes(), 0u);
  expect_nothing_happened();
  with.max_session_bytes = stored;
  EXPECT_OK(convert_session(fs, with, first, atf::Version::kV1, goes_on));
}

TEST_F(SessionConversionTest, DiskThatFillsUpMeanwhileLeavesNothing) {
  FaultFs small({.capacity = 80'000});  // the reserve alone has 64 KiB
  EXPECT_EQ(convert(small, first, atf::Version::kV1).code(), Code::kNoSpace);
  expect_nothing_happened();
}

TEST_F(SessionConversionTest, ItCanBeEndedAtEveryPage) {
  uint64_t steps = 0;
  ASSERT_OK(convert(fs, first, atf::Version::kV1, [&](uint64_t done, uint64_t all) -> Status {
    EXPECT_LE(done, all);
    ++steps;
    return {};
  }));
  // Before the first page, after each page, and before it gets its name.
  ASSERT_GE(steps, 1 + 4 + 1u);
  ASSERT_OK(remove_session(fs, *parse_session_path(root.path(), first.session + "_atf1/pid_4711")));
  for (uint64_t last = 0; last < steps; ++last) {
    uint64_t at = 0;
    const auto ended = convert(fs, first, atf::Version::kV1, [&](uint64_t, uint64_t) -> Status {
      if (at++ < last) return {};
      return Error{Code::kCancelled, "enough"};
    });
    ASSERT_EQ(ended.code(), Code::kCancelled) << last;
    EXPECT_EQ(at, last + 1);
    expect_nothing_happened();
  }
}

TEST_F(SessionConversionTest, FailedDiskChangeLeavesAllOrNothing) {
  bool done = false;
  for (uint64_t k = 0; !done; ++k) {
    ASSERT_LT(k, 500u);
    SCOPED_TRACE(k);
    FaultFs breaking({.fail_at = k});
    const auto converted = convert(breaking, first, atf::Version::kV1);
    done = !breaking.failed();
    EXPECT_EQ(files_of(first.directory), before);
    if (converted.ok()) {
      expect_reference_ok(converted->session_path.directory);
      ASSERT_OK(remove_session(fs, converted->session_path));
    }
    ASSERT_OK(remove_unfinished_sessions(fs, root.path()));
    const std::string target = root.path() + "/" + first.session + "_atf1";
    if (filesystem::exists(target)) {  // it was there before what failed
      expect_reference_ok(target + "/pid_4711");
      filesystem::remove_all(target);
    }
    expect_nothing_happened();
  }
}

// kill -9, or the power of the machine, after each change: the next start clears what was left.
TEST_F(SessionConversionTest, ProcessMayEndAtAnyChange) {
  bool done = false;
  uint64_t unfinished = 0, finished = 0;
  for (uint64_t k = 0; !done; ++k) {
    ASSERT_LT(k, 500u);
    SCOPED_TRACE(k);
    FaultFs dying({.fail_at = k, .crash = true, .short_write = true});
    const auto converted = convert(dying, first, atf::Version::kV1);
    done = !dying.failed();
    EXPECT_EQ(files_of(first.directory), before);
    unfinished += filesystem::exists(root.path() + "/" + kConvertingDirectory);
    // No list shows what is half made, and nothing of it is left by the next start.
    const std::string target = first.session + "_atf1";
    const bool is_there = filesystem::exists(root.path() + "/" + target);
    EXPECT_EQ(list_sessions_of(root.path()).size(), is_there ? 2u : 1u);
    ASSERT_OK(remove_unfinished_sessions(fs, root.path()));
    if (is_there) {
      ++finished;
      EXPECT_EQ(manifest_of(root.path() + "/" + target + "/pid_4711").state,
                SessionState::kComplete);
      expect_reference_ok(root.path() + "/" + target + "/pid_4711");
      filesystem::remove_all(root.path() + "/" + target);
    }
    expect_nothing_happened();
  }
  EXPECT_GT(unfinished, 30u);
  EXPECT_GT(finished, 0u);
}

TEST_F(SessionConversionTest, CountsUnreadableInputAsMissing) {
  const auto damaged = [&](const std::string& path, auto change) {
    auto bytes = before.at(path);
    change(bytes);
    write_file(first.directory + "/" + path, bytes);
    const auto converted = convert(atf::Version::kV1);
    EXPECT_OK(converted);
    write_file(first.directory + "/" + path, before.at(path));
    if (!converted.ok()) return MadeSession{};
    EXPECT_EQ(converted->manifest.state, SessionState::kRecovered);
    EXPECT_EQ(converted->manifest.input_missing, converted->report.missing);
    expect_reader_ok(converted->session_path.directory);
    EXPECT_OK(remove_session(fs, converted->session_path));
    return *converted;
  };
  const auto said = [](const MadeSession& session) {
    std::string text;
    for (const MissingInput& one : session.report.missing) {
      text += (one.count == 0 ? "" : std::to_string(one.count) + " ") + one.what + "\n";
    }
    return text;
  };
  // One bit of the last event's function: the event goes over, the checksum tells.
  const auto flipped =
      damaged("thread_0/index.atf", [](auto& bytes) { bytes[bytes.size() - 64 - 32 + 8] ^= 1; });
  EXPECT_THAT(said(flipped), HasSubstr("thread_0/index.atf: its checksum does not fit"));
  EXPECT_EQ(flipped.report.totals.events, recorded.promised_totals.events);
  // A kind that is none: its page is damaged.
  const auto odd = damaged("thread_1/index.atf", [](auto& bytes) { bytes[64 + 24] = 9; });
  EXPECT_THAT(said(odd), HasSubstr("thread_1/index.atf: an event of no known kind"));
  EXPECT_THAT(said(odd), HasSubstr("9 events that were stored and are not in the session's files"));
  EXPECT_THAT(said(odd), HasSubstr("1 damaged page"));
  // Cut in the middle of the fifth event.
  const auto cut =
      damaged("thread_1/index.atf", [](auto& bytes) { bytes.resize(64 + 4 * 32 + 16); });
  EXPECT_THAT(said(cut), HasSubstr("thread_1/index.atf: it has no footer"));
  EXPECT_THAT(said(cut), HasSubstr("5 events that were stored and are not in"));
  // A frame of times off the processor: those before it are there. The scenario has two frames, of
  // four times, a wait for a lock and a sample, and of two.
  const auto switches = damaged("switches.bin", [](auto& bytes) { bytes.back() ^= 1; });
  EXPECT_THAT(said(switches), HasSubstr("2 times off the processor that were stored"));
  EXPECT_EQ(switches.report.totals.stalls.switches, 4u);
  EXPECT_EQ(switches.report.totals.stalls.lock_waits, 1u);
  EXPECT_EQ(switches.report.totals.stalls.samples, 1u);
  EXPECT_EQ(switches.report.totals.events, recorded.promised_totals.events);
  // No header: the thread is there, without an event, and all of it is lost.
  const auto headless = damaged("thread_1/index.atf", [](auto& bytes) { bytes.clear(); });
  EXPECT_THAT(said(headless), HasSubstr("9 events that were stored and are not in"));
  ASSERT_EQ(headless.manifest.threads.size(), 2u);
  EXPECT_EQ(headless.manifest.threads[1].thread_id, 200u);
  EXPECT_EQ(headless.manifest.threads[1].lost_events, 9u);
  // A length that leads nowhere ends the detail records.
  const auto lengthless = damaged("thread_1/detail.atf", [](auto& bytes) { bytes[64] = 3; });
  EXPECT_THAT(said(lengthless), HasSubstr("9 detail records that were stored and are not in"));
  // Another thread's file.
  const auto strange =
      damaged("thread_1/index.atf", [&](auto& bytes) { bytes = before.at("thread_0/index.atf"); });
  EXPECT_THAT(said(strange), HasSubstr("thread_1/index.atf: not of this session"));
  // And a file that is gone.
  filesystem::remove(first.directory + "/thread_0/detail.atf");
  const auto gone = convert(atf::Version::kV1);
  ASSERT_OK(gone);
  EXPECT_THAT(said(*gone), HasSubstr("15 detail records that were stored and are not in"));
}

TEST_F(SessionConversionTest, LongDetailRecordsAndManyPagesComeOver) {
  FakeStream stream(atf::Version::kV2, 7, 300);
  for (int i = 0; i < 6000; ++i) {
    stream.add(i % 2 == 0 ? FakeStream::Detail::kLinked : FakeStream::Detail::kNone,
               i == 4000 ? 65'000 : 40);
  }
  auto session = make();
  ASSERT_OK(session->open_stream(stream.info()));
  ASSERT_OK(append(*session, stream.index_page(0, 6000)));
  ASSERT_OK(append(*session, stream.detail_page(0, 3000)));
  ASSERT_OK(session->close_stream(stream.end()));
  ASSERT_OK(session->seal(SessionState::kComplete, "done"));
  const SessionPath long_one = session_path_of(session->directory());
  const auto one = convert(fs, long_one, atf::Version::kV1);
  ASSERT_OK(one);
  EXPECT_GT(one->report.pages, 8u);
  EXPECT_TRUE(one->report.missing.empty());
  const auto two = convert(fs, one->session_path, atf::Version::kV2);
  ASSERT_OK(two);
  for (const char* file : {"/thread_0/index.atf", "/thread_0/detail.atf"}) {
    EXPECT_EQ(read_file(long_one.directory + file), read_file(two->session_path.directory + file))
        << file;
  }
}

TEST_F(SessionConversionTest, FailedSessionStaysOne) {
  Scenario other;
  auto session = make();
  FakeStream stream(atf::Version::kV2, 1, 100);
  stream.add_many(50);
  ASSERT_OK(session->open_stream(stream.info()));
  ASSERT_OK(append(*session, stream.index_page(0, 50)));
  ASSERT_OK(session->seal(SessionState::kFailed, "keep_free_bytes reached"));
  const auto converted = convert(fs, session_path_of(session->directory()), atf::Version::kV1);
  ASSERT_OK(converted);
  EXPECT_EQ(converted->manifest.state, SessionState::kFailed);
  EXPECT_EQ(converted->manifest.reason, "keep_free_bytes reached");
  EXPECT_EQ(converted->manifest.totals.events, 50u);
}

}  // namespace
}  // namespace collect::storage::test
