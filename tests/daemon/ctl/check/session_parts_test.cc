// What is read of a manifest, field by field; which session a directory means; and each sentence of
// a manifest that does not fit its files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/ctl/check/inspect.h"
#include "daemon/ctl/check/trace_check.h"
#include "daemon/ctl/check/verify.h"
#include "storage/manifest/manifest.h"
#include "storage/read/session_files.h"
#include "storage/read/session_manifest.h"
#include "tests/daemon/ctl/check/session.h"

namespace collect::ctl {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// ---- the manifest

TEST(ManifestFields, AreAllRead) {
  const auto parsed =
      read::SessionManifest::parse(R"json({"format_version":"2.3","state":"recovered",
    "reason":"cut off","time_start_ns":5,"time_end_ns":9,"process":{"name":"app"},
    "threads":[{"id":3,"has_detail":true,"ended":true,"thread_id":4711,"name":"main","events":10,
      "detail_records":11,"lost_events":12,"lost_detail_records":13},{"id":1}],
    "modules":[{"module_id":7,"path":"/lib/libx.so"},{"module_id":8}],
    "symbols":[{"function_id":"0x700000010","module_id":7,"symbol_index":16,"name":"main()"},
      {"function_id":"0XfF"}],
    "gaps":[{"thread":3,"lane":"detail","lost":2,"before_seq":4,"first_ns":6,"last_ns":8},
      {"thread":1,"lost":1}],
    "stalls":[{"kind":"page_wait","thread":3,"first_ns":10,"last_ns":20,"stalled_ns":7,"joined":4},
      {"kind":"stopped","first_ns":30,"last_ns":35},
      {"kind":"suspended","first_ns":1,"last_ns":3,"stalled_ns":99,"joined":0}],
    "totals":{"events":21,"detail_records":22,"lost_events":23,"lost_detail_records":24,
      "lost_without_stream":25}
})json");
  ASSERT_TRUE(parsed.ok());
  const read::SessionManifest& manifest = *parsed;
  EXPECT_EQ(manifest.format_version, "2.3");
  EXPECT_EQ(manifest.said_state, "recovered");
  EXPECT_EQ(manifest.reason, "cut off");
  EXPECT_EQ(manifest.time_start_ns, 5u);
  EXPECT_EQ(manifest.time_end_ns, 9u);
  EXPECT_EQ(manifest.identity.process_name, "app");
  EXPECT_TRUE(manifest.problems.empty());
  const read::ManifestThread* thread = manifest.thread(3);
  ASSERT_NE(thread, nullptr);
  EXPECT_EQ(thread->id, 3u);
  EXPECT_EQ(thread->has_detail, true);
  EXPECT_TRUE(thread->ended);
  EXPECT_EQ(thread->thread_id, 4711u);
  EXPECT_EQ(thread->name, "main");
  EXPECT_EQ(thread->events, 10u);
  EXPECT_EQ(thread->detail_records, 11u);
  EXPECT_EQ(thread->lost_events, 12u);
  EXPECT_EQ(thread->lost_detail_records, 13u);
  thread = manifest.thread(1);
  ASSERT_NE(thread, nullptr);
  EXPECT_FALSE(thread->has_detail || thread->ended);
  for (const auto key : {storage::kThreadIdKey, storage::kEventsKey, storage::kDetailRecordsKey,
                         storage::kLostEventsKey, storage::kLostDetailRecordsKey}) {
    EXPECT_TRUE(manifest.thread(3)->says(key));
    EXPECT_FALSE(thread->says(key));
  }
  ASSERT_EQ(manifest.modules.size(), 2u);
  EXPECT_EQ(manifest.modules[0].module_id, 7u);
  EXPECT_EQ(manifest.modules[0].path, "/lib/libx.so");
  ASSERT_EQ(manifest.symbols.size(), 2u);
  EXPECT_EQ(manifest.symbols[0].function_id, 0x700000010u);
  EXPECT_EQ(manifest.symbols[0].name, "main()");
  EXPECT_EQ(manifest.symbols[1].function_id, 255u);
  ASSERT_EQ(manifest.gaps.size(), 2u);
  EXPECT_EQ(manifest.gaps[0].thread, 1u) << "by thread";
  EXPECT_EQ(manifest.gaps[0].lane, Lane::kIndex);
  EXPECT_FALSE(manifest.gaps[0].has_place);
  EXPECT_EQ(manifest.gaps[0].first_ns, 0u);
  EXPECT_EQ(manifest.gaps[0].last_ns, 0u);
  EXPECT_EQ(manifest.gaps[1].lane, Lane::kDetail);
  EXPECT_EQ(manifest.gaps[1].lost, 2u);
  EXPECT_EQ(manifest.gaps[1].before_seq, 4u);
  EXPECT_EQ(manifest.gaps[1].first_ns, 6u);
  EXPECT_EQ(manifest.gaps[1].last_ns, 8u);
  ASSERT_EQ(manifest.stalls.size(), 3u);
  EXPECT_EQ(manifest.stalls[0].kind, storage::StallKind::kSuspended) << "of every thread first";
  EXPECT_EQ(manifest.stalls[0].stalled_ns, 2u) << "no longer than it lasted";
  EXPECT_EQ(manifest.stalls[0].count, 1u);
  EXPECT_EQ(manifest.stalls[1].kind, storage::StallKind::kStopped);
  EXPECT_EQ(manifest.stalls[1].stalled_ns, 5u);
  EXPECT_EQ(manifest.stalls[1].count, 1u);
  EXPECT_EQ(manifest.stalls[2].kind, storage::StallKind::kPageWait);
  EXPECT_EQ(manifest.stalls[2].thread, 3u);
  EXPECT_EQ(manifest.stalls[2].first_ns, 10u);
  EXPECT_EQ(manifest.stalls[2].last_ns, 20u);
  EXPECT_EQ(manifest.stalls[2].stalled_ns, 7u);
  EXPECT_EQ(manifest.stalls[2].count, 4u);
  EXPECT_EQ(manifest.stall_totals().count, 6u);
  EXPECT_EQ(manifest.totals.events, 21u);
  EXPECT_EQ(manifest.totals.detail_records, 22u);
  EXPECT_EQ(manifest.totals.lost_events, 23u);
  EXPECT_EQ(manifest.totals.lost_detail_records, 24u);
  EXPECT_EQ(manifest.lost_without_stream, 25u);
}

TEST(ManifestFields, ReportsEachProblemWithItsPlace) {
  const auto problems = [](const std::string& lists) {
    const auto manifest =
        read::SessionManifest::parse(R"json({"threads":[{"id":0}],)json" + lists + "}");
    EXPECT_TRUE(manifest.ok()) << lists;
    std::string text;
    for (const storage::ManifestProblem& problem : manifest->problems) {
      text += problem.place + ": " + problem.sentence + "\n";
    }
    return text;
  };
  EXPECT_EQ(read::SessionManifest::parse(R"json({"threads":[7,{"id":1},{"id":1},{"id":4294967295},
                                                  {"id":4294967296}]})json")
                ->threads.size(),
            2u);
  EXPECT_EQ(problems(R"json("modules":[{"module_id":4294967296},{"module_id":4294967295}])json"),
            "/modules/0/module_id: is no module number\n");
  const std::string no_id = "/function_id: is no hex string of at most 16 digits\n";
  EXPECT_EQ(problems(R"json("symbols":[{"function_id":"0x"},{"function_id":"1x1"},
                        {"function_id":"0y1"},{"function_id":"0x1234567890abcdef"},
                        {"function_id":"0x1234567890abcdef0"},{"function_id":"0xg"},{}])json"),
            "/symbols/0" + no_id + "/symbols/1" + no_id + "/symbols/2" + no_id + "/symbols/4" +
                no_id + "/symbols/5" + no_id + "/symbols/6" + no_id);
  const std::string other = ": module_id and symbol_index do not make up the function_id\n";
  EXPECT_EQ(
      problems(R"json("symbols":[{"function_id":"0x100000002","module_id":1,"symbol_index":2},
                        {"function_id":"0x100000002","module_id":2,"symbol_index":2},
                        {"function_id":"0x100000002","module_id":1,"symbol_index":1},
                        {"function_id":"0x100000002","symbol_index":1},
                        {"function_id":"0x100000002","module_id":2}])json"),
      "/symbols/1" + other + "/symbols/2" + other + "/symbols/3" + other + "/symbols/4" + other);
  const std::string gap = ": lacks the thread or the number of lost records\n";
  EXPECT_EQ(problems(R"json("gaps":[1,{"thread":0},{"lost":3},{"thread":0,"lost":3}])json"),
            "/gaps/0" + gap + "/gaps/1" + gap + "/gaps/2" + gap);
  const std::string stall = ": lacks the kind, or its times contradict each other\n";
  EXPECT_EQ(problems(R"json("stalls":[1,{"kind":"x","first_ns":1,"last_ns":2},
                        {"kind":"stopped","first_ns":2,"last_ns":2},
                        {"kind":"stopped","first_ns":1,"last_ns":2}])json"),
            "/stalls/0" + stall + "/stalls/1" + stall + "/stalls/2" + stall);
}

TEST(ManifestFields, ControlCharactersAndBytesAreForgiven) {
  const auto name = [](const std::string& raw) {
    const auto manifest =
        read::SessionManifest::parse("{\"threads\":[{\"id\":0,\"name\":\"" + raw + "\"}]}");
    EXPECT_TRUE(manifest.ok()) << raw;
    return manifest.ok() ? manifest->threads[0].name : "";
  };
  EXPECT_EQ(name("a\x1f\x01z"), "a\x1f\x01z");
  EXPECT_EQ(name("a\\\"b\n"), "a\"b\n");
  EXPECT_EQ(name("\x80\n\x7f"), "?\n\x7f");
  EXPECT_EQ(name("\xC3\xA9\n"), "\xC3\xA9\n");
}

TEST(ManifestFields, NamesOfFunctions) {
  read::SessionManifest manifest;
  manifest.symbols = {{0x700000010, "main()", "a.cc", 3}, {0x700000020, ""}};
  manifest.modules = {
      {7, "/lib/libx.so", {}}, {8, "C:\\bin\\app.exe", {}}, {9, "", {}}, {10, "plain", {}}};
  const read::NameTable names(manifest);
  const auto appended = [&](uint64_t id) {
    std::string text = "<";
    names.append_name(text, id);
    return text;
  };
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(names.name_of(0x700000010), "main()");
    EXPECT_EQ(names.name_of(0x700000020), "libx.so+0x20") << "an empty name is none";
    EXPECT_EQ(names.name_of(0x8000000ff), "app.exe+0xff");
    EXPECT_EQ(names.name_of(0x9000000ff), "0x9000000ff");
    EXPECT_EQ(names.name_of(0xA00000000), "plain+0x0");
    EXPECT_EQ(names.name_of(UINT64_MAX), "0xffffffffffffffff");
  }
  EXPECT_EQ(appended(0x700000010), "<main()");
  EXPECT_EQ(appended(0x700000020), "<libx.so+0x20");
  EXPECT_EQ(appended(0xB00000001), "<0xb00000001");
  ASSERT_NE(names.source_of(0x700000010), nullptr);
  EXPECT_EQ(names.source_of(0x700000010)->file, "a.cc");
  EXPECT_EQ(names.source_of(0x700000010)->line, 3u);
  EXPECT_EQ(names.source_of(0x700000020), nullptr);
  EXPECT_EQ(names.module_name_of(7), "libx.so");
  EXPECT_EQ(names.module_name_of(9), "0x9");
  EXPECT_EQ(names.module_name_of(31), "0x1f");
}

// ---- which session is meant

class SessionsBelow : public testing::OfflineTest {
 protected:
  void SetUp() override {
    OfflineTest::SetUp();
    fs::remove_all(session_.parent_path());
  }
  void make(const std::string& below) {
    session_ = root_ / below;
    write_thread(0, testing::index_of({{1, testing::kCall, 1}}, 1));
    write_text(session_ / "manifest.json", R"json({"threads":[]})json");
  }
  // The session that is opened, below the root, and the sentence about it.
  std::string opened(const std::string& below = "") {
    const auto trace = read::open_trace((root_ / below).string());
    if (!trace.ok()) return trace.error().message;
    const std::string root = root_.string() + "/";
    EXPECT_TRUE(trace->path.starts_with(root)) << trace->path;
    choice_ = trace->choice;
    return trace->path.substr(root.size());
  }
  std::string choice_;
};

TEST_F(SessionsBelow, NewestByItsName) {
  make("session_20250102_030405/pid_9");
  EXPECT_EQ(opened(), "session_20250102_030405/pid_9");
  EXPECT_EQ(choice_, (root_ / "session_20250102_030405/pid_9").string() +
                         " is the only session in " + root_.string());
  make("session_20250102_030404/pid_8");
  EXPECT_EQ(opened(), "session_20250102_030405/pid_9");
  EXPECT_EQ(choice_, (root_ / "session_20250102_030405/pid_9").string() +
                         " is the newest of 2 sessions in " + root_.string());
  make("session_20250102_030406/pid_1");
  EXPECT_EQ(opened(), "session_20250102_030406/pid_1");
  make("session_20250102_030406_2/pid_1");
  EXPECT_EQ(opened(), "session_20250102_030406_2/pid_1");
  make("session_20250102_030406_10/pid_1");
  EXPECT_EQ(opened(), "session_20250102_030406_10/pid_1");
  make("session_20250102_030406_10_atf1/pid_1");
  EXPECT_EQ(opened(), "session_20250102_030406_10/pid_1") << "what was recorded, not converted";
  make("else/session_20250102_030407/inner/pid_1");
  EXPECT_EQ(opened(), "else/session_20250102_030407/inner/pid_1");
  make("session_20250102_030408x/pid_1");
  EXPECT_EQ(opened(), "session_20250102_030408x/pid_1") << "named nearly so";
  make("session_20250102_030408_3x/pid_1");
  make("session_20250102_030408_2/pid_1");
  EXPECT_EQ(opened(), "session_20250102_030408_2/pid_1");
  make("session_2026010x_030405_10/pid_1");
  make("session_2026010x_030405_2/pid_1");
  EXPECT_EQ(opened(), "session_2026010x_030405_10/pid_1") << "by number, with any stamp";
  EXPECT_EQ(opened("session_20250102_030406"), "session_20250102_030406/pid_1");
  EXPECT_EQ(opened("session_20250102_030406/pid_1"), "session_20250102_030406/pid_1");
  EXPECT_EQ(choice_, "");
  EXPECT_EQ(opened("session_20250102_030406/pid_1/"), "session_20250102_030406/pid_1");
}

TEST_F(SessionsBelow, WithoutAStampTheOneWrittenLast) {
  make("short_1/pid_1");
  make("session_2025/pid_2");
  const auto now = fs::last_write_time(root_ / "short_1/pid_1");
  fs::last_write_time(root_ / "session_2025/pid_2", now - std::chrono::hours(1));
  EXPECT_EQ(opened(), "short_1/pid_1");
  fs::last_write_time(root_ / "session_2025/pid_2", now + std::chrono::hours(1));
  EXPECT_EQ(opened(), "session_2025/pid_2");
  fs::last_write_time(root_ / "session_2025/pid_2", now);
  EXPECT_EQ(opened(), "short_1/pid_1") << "the last of their names";
}

TEST_F(SessionsBelow, SkipsUnfinishedAndTooDeepSessions) {
  make("a/b/c/d/e/pid_1");
  EXPECT_EQ(opened(), "a/b/c/d/e/pid_1");
  make("f/a/b/c/d/e/pid_2");
  EXPECT_EQ(opened("f"), "f/a/b/c/d/e/pid_2");
  make("h/a/b/c/d/e/f/pid_2");
  EXPECT_EQ(opened("h"), (root_ / "h").string() + ": no session in it");
  make("i/.converting/session_20260102_030405/pid_3");
  EXPECT_THAT(opened("i"), HasSubstr("no session in it"));
  make("j/session_20250102_030405/pid_4");
  fs::create_directory_symlink(root_ / "h/a/b/c/d/e/f/pid_2", root_ / "j/pid_5");
  EXPECT_EQ(opened("j"), "j/session_20250102_030405/pid_4") << "links are not followed";
}

TEST_F(SessionsBelow, SessionIsKnownByItsThreadsOrItsManifest) {
  fs::create_directories(root_ / "a/pid_1");
  EXPECT_THAT(opened("a"), HasSubstr("no session in it"));
  write_text(root_ / "a/pid_1/manifest.json", R"json({"threads":[]})json");
  EXPECT_EQ(opened("a"), "a/pid_1");
  fs::create_directories(root_ / "b/any/thread_0");
  EXPECT_EQ(opened("b"), "b/any");
  fs::create_directories(root_ / "c/any/thread_x");
  write_text(root_ / "c/any/manifest.json", R"json({"threads":[]})json");
  EXPECT_THAT(opened("c"), HasSubstr("no session in it"));
  fs::create_directories(root_ / "d/any");
  write_text(root_ / "d/any/thread_0", "a file");
  EXPECT_THAT(opened("d"), HasSubstr("no session in it"));
  // Threads in the order of their numbers, others beside them.
  make("e/pid_1");
  for (const int n : {10, 2}) write_thread(n, testing::index_of({{1, testing::kCall, 1}}, 1));
  fs::create_directories(session_ / "thread_2x");
  const auto trace = read::open_trace(session_.string());
  ASSERT_TRUE(trace.ok());
  std::vector<uint32_t> numbers;
  for (const read::TraceThread& thread : trace->threads) numbers.push_back(thread.n);
  EXPECT_THAT(numbers, ElementsAre(0, 2, 10));
  EXPECT_EQ(trace->files({2}).size(), 1u);
  EXPECT_EQ(trace->files().size(), 3u);
}

TEST_F(SessionsBelow, PartsOfASessionKnowTheirNumberAndManifest) {
  make("session_20250102_030405/pid_7");
  atf::testing::ThreadPlan plan;
  plan.detail_every = 1;
  const auto made = build_thread(plan);
  write_thread(12, made.index, made.detail);
  const fs::path thread = session_ / "thread_12";
  for (const auto& [path, kind] :
       {std::pair(thread, read::TraceKind::kThread),
        std::pair(thread / "index.atf", read::TraceKind::kIndexFile),
        std::pair(thread / "detail.atf", read::TraceKind::kDetailFile)}) {
    const auto trace = read::open_trace(path.string());
    ASSERT_TRUE(trace.ok()) << path;
    EXPECT_EQ(trace->kind, kind);
    EXPECT_EQ(trace->path, path.string());
    ASSERT_EQ(trace->threads.size(), 1u);
    EXPECT_EQ(trace->threads[0].n, 12u);
    EXPECT_EQ(trace->threads[0].index_path, (thread / "index.atf").string());
    EXPECT_EQ(trace->threads[0].detail_path, (thread / "detail.atf").string());
    EXPECT_TRUE(trace->threads[0].detail.has_value());
    EXPECT_FALSE(trace->threads[0].error.has_value());
    EXPECT_EQ(trace->manifest_path, (session_ / "manifest.json").string());
    EXPECT_EQ(trace->manifest, R"json({"threads":[]})json");
    EXPECT_TRUE(trace->unopened().empty());
  }
  // A link beside a file is not followed, and said.
  fs::remove(thread / "detail.atf");
  write_text(root_ / "elsewhere", "x");
  fs::create_symlink(root_ / "elsewhere", thread / "detail.atf");
  for (const fs::path& path : {thread / "index.atf", thread, session_}) {
    const auto trace = read::open_trace(path.string());
    ASSERT_TRUE(trace.ok());
    const auto said = trace->unopened();
    ASSERT_EQ(said.size(), 1u) << path;
    EXPECT_THAT(said[0], HasSubstr((thread / "detail.atf").string()));
    EXPECT_TRUE(say_unopened(*trace, err_));
    EXPECT_EQ(err_.str(), "collectctl: " + said[0] + "\n");
    err_.str("");
  }
  fs::remove(thread / "index.atf");
  fs::create_symlink(root_ / "elsewhere", thread / "index.atf");
  const auto both = read::open_trace(thread.string());
  ASSERT_TRUE(both.ok());
  EXPECT_THAT(both->unopened()[0], HasSubstr((thread / "index.atf").string()))
      << "of two the first";
  fs::remove(session_ / "manifest.json");
  fs::create_symlink(root_ / "elsewhere", session_ / "manifest.json");
  const auto whole = read::open_trace(session_.string());
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(whole->unopened().size(), 2u);
  EXPECT_FALSE(whole->manifest.has_value());
}

TEST_F(SessionsBelow, ManifestHasALimit) {
  make("session_20250102_030405/pid_7");
  fs::resize_file(session_ / "manifest.json", storage::kMaxManifestBytes);
  EXPECT_TRUE(read::open_trace(session_.string())->manifest.has_value());
  fs::resize_file(session_ / "manifest.json", storage::kMaxManifestBytes + 1);
  const auto trace = read::open_trace(session_.string());
  EXPECT_FALSE(trace->manifest.has_value());
  EXPECT_EQ(trace->manifest_error->code, Code::kLimit);
  EXPECT_EQ(trace->manifest_error->message,
            (session_ / "manifest.json").string() + ": larger than 268435456 bytes");
}

// ---- a manifest that does not fit

class ManifestAgainstFiles : public testing::OfflineTest {
 protected:
  // What verify says of the planned session, whose manifest has one text replaced by another.
  std::string said(const std::string& from, const std::string& to, bool strict = false) {
    write_planned_session();
    std::string manifest = planned_manifest();
    const size_t at = manifest.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    manifest.replace(at, from.size(), to);
    write_text(session_ / "manifest.json", manifest);
    out_.str("");
    VerifyOptions options;
    options.path = session_.string();
    options.strict = strict;
    (void)verify(options, out_, err_);
    std::string text = out_.str();
    const std::string path = (session_ / "manifest.json").string() + ": ";
    std::string findings;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with(path)) findings += line.substr(path.size()) + "\n";
    }
    return findings;
  }
};

TEST_F(ManifestAgainstFiles, EachDifferenceIsASentence) {
  EXPECT_EQ(said("\"state\"", "\"state\""), "");
  EXPECT_EQ(
      said("{\"id\":0,", "{\"id\":5,"),
      "/threads: warning: lists other threads than the directory holds (1 listed, 1 there)\n");
  EXPECT_EQ(
      said("\"threads\":[", "\"threads\":[{\"id\":5,\"ended\":true},"),
      "/threads: warning: lists other threads than the directory holds (2 listed, 1 there)\n");
  EXPECT_EQ(said("\"has_detail\":true", "\"has_detail\":false"),
            "/threads/0/has_detail: warning: is wrong for thread 0\n");
  EXPECT_EQ(said("\"has_detail\":true,", ""),
            "/threads/0/has_detail: warning: is wrong for thread 0\n");
  EXPECT_EQ(said("\"thread_id\":4711", "\"thread_id\":4712"),
            "/threads/0/thread_id: says 4712 as the thread id, the files have 4711\n");
  EXPECT_EQ(said("\"thread_id\":4711,", ""), "");
  EXPECT_EQ(said("\"events\":12,\n", "\"events\":13,\n"),
            "/threads/0/events: says 13 events, the files have 12\n");
  EXPECT_EQ(said("\"detail_records\":4,\"lost", "\"detail_records\":5,\"lost"),
            "/threads/0/detail_records: says 5 detail records, the files have 4\n");
  EXPECT_EQ(said("\"totals\":{\"events\":12", "\"totals\":{\"events\":11"),
            "/totals/events: says 11 events, the files have 12\n");
  const std::string totals =
      "\"totals\":{\"events\":12,\"detail_records\":4,\"lost_events\":0,"
      "\"lost_detail_records\":0}";
  const auto with_totals = [&](const std::string& other) { return said(totals, other); };
  EXPECT_EQ(with_totals("\"totals\":{\"detail_records\":3}"),
            "/totals/detail_records: says 3 detail records, the files have 4\n");
  EXPECT_EQ(with_totals("\"totals\":{\"lost_events\":2}"),
            "/totals/lost_events: says 2 lost, the threads say 0\n");
  EXPECT_EQ(with_totals("\"totals\":{\"lost_detail_records\":2}"),
            "/totals/lost_detail_records: says 2 lost, the threads say 0\n");
  EXPECT_EQ(said("\"lost_events\":0,\"lost_detail_records\":0}],",
                 "\"lost_events\":5,\"lost_detail_records\":7}],"),
            "/totals/lost_events: says 0 lost, the threads say 5\n"
            "/totals/lost_detail_records: says 0 lost, the threads say 7\n"
            "/threads/0/lost_events: says 5 lost, the gaps explain 0\n"
            "/threads/0/lost_detail_records: says 7 lost, the gaps explain 0\n");
  EXPECT_EQ(said("\"gaps\":[]",
                 "\"gaps\":[{\"thread\":0,\"lane\":\"index\",\"lost\":2},"
                 "{\"thread\":0,\"lane\":\"index\",\"lost\":1},"
                 "{\"thread\":0,\"lane\":\"detail\",\"lost\":4}]"),
            "/threads/0/lost_events: says 0 lost, the gaps explain 3\n"
            "/threads/0/lost_detail_records: says 0 lost, the gaps explain 4\n");
  const std::string outside =
      "/time_start_ns: warning: the events are outside the manifest's time range\n";
  EXPECT_EQ(said("\"time_start_ns\":1000", "\"time_start_ns\":1001"), outside);
  EXPECT_EQ(said("\"time_end_ns\":1110", "\"time_end_ns\":1109"), outside);
  EXPECT_EQ(said("\"time_start_ns\":1000,\"time_end_ns\":1110",
                 "\"time_start_ns\":1001,\"time_end_ns\":0"),
            "")
      << "without an end there is no range";
}

// Counts on disk run behind the files while it records.
TEST_F(ManifestAgainstFiles, ComparesOnlyFixedFieldsWhileRecording) {
  const auto recording = [&](const std::string& from, const std::string& to, bool strict) {
    write_planned_session();
    std::string manifest = planned_manifest();
    for (const auto& [is, becomes] :
         {std::pair<std::string, std::string>("\"state\":\"complete\"", "\"state\":\"recording\""),
          std::pair(from, to)}) {
      manifest.replace(manifest.find(is), is.size(), becomes);
    }
    write_text(session_ / "manifest.json", manifest);
    out_.str("");
    VerifyOptions options;
    options.path = session_.string();
    options.strict = strict;
    (void)verify(options, out_, err_);
    return out_.str();
  };
  const std::string path = (session_ / "manifest.json").string() + ": ";
  const std::string recorded = session_.string() + ": recording: not sealed";
  EXPECT_TRUE(recording("\"events\":12,\n", "\"events\":13,\n", false).starts_with(recorded))
      << out_.str();
  EXPECT_TRUE(recording("\"time_end_ns\":1110", "\"time_end_ns\":1", false).starts_with(recorded));
  EXPECT_TRUE(recording("\"totals\":{\"events\":12", "\"totals\":{\"events\":1", true)
                  .starts_with(path +
                               "/state: note: the session is still recording, or was never "
                               "sealed\n" +
                               recorded))
      << out_.str();
  EXPECT_TRUE(recording("\"thread_id\":4711", "\"thread_id\":1", false)
                  .starts_with(path + "/threads/0/thread_id: says 1 as the thread id"))
      << out_.str();
}

TEST_F(ManifestAgainstFiles, FilesAloneAndThreadsAlone) {
  write_planned_session();
  fs::remove(session_ / "manifest.json");
  VerifyOptions options;
  const auto run = [&](const fs::path& path) {
    out_.str("");
    options.path = path.string();
    const int code = verify(options, out_, err_);
    return out_.str() + std::to_string(code);
  };
  EXPECT_EQ(run(session_ / "thread_0"), "ok: " + (session_ / "thread_0").string() +
                                            ": 1 thread, 12 events, 4 details, 0 known to be "
                                            "lost\n0");
  // A manifest that cannot be opened is a warning beside a thread, and an error of a session.
  fs::create_directory(session_ / "manifest.json");
  EXPECT_THAT(run(session_ / "thread_0"),
              HasSubstr("manifest.json: warning: is a directory, not a regular file"));
  EXPECT_THAT(run(session_), HasSubstr("manifest.json: is a directory, not a regular file"));
  EXPECT_THAT(run(session_), ::testing::EndsWith("1"));
}

TEST_F(ManifestAgainstFiles, CountsLostEventsOfTheNamedThreads) {
  write_planned_session();
  std::string manifest = planned_manifest();
  const auto replace = [&](const std::string& from, const std::string& to) {
    manifest.replace(manifest.find(from), from.size(), to);
  };
  replace("\"lost_events\":0,\"lost_detail_records\":0}],",
          "\"lost_events\":5,\"lost_detail_records\":0},{\"id\":9,\"lost_events\":3}],");
  replace("\"totals\":{", "\"totals\":{\"lost_without_stream\":7,");
  write_text(session_ / "manifest.json", manifest);
  const auto quiet = [](size_t, size_t) {};
  const TraceReport session = check_trace(*read::open_trace(session_.string()), quiet);
  EXPECT_EQ(session.lost_events(), 15u);
  const TraceReport thread =
      check_trace(*read::open_trace((session_ / "thread_0").string()), quiet);
  EXPECT_EQ(thread.lost_events(), 5u);
  EXPECT_EQ(session.first_ns(), 1000u);
  EXPECT_EQ(session.last_ns(), 1110u);
  fs::remove(session_ / "manifest.json");
  EXPECT_EQ(check_trace(*read::open_trace(session_.string()), quiet).lost_events(), 0u);
}

TEST(ProgressLines, ShowsProgressInThreads) {
  std::ostringstream err;
  const std::string restart = "\r\x1b[K";
  progress_line(err, false)(0, 5);
  EXPECT_EQ(err.str(), "");
  const auto line = progress_line(err, true);
  line(0, 1);
  line(1, 1);
  EXPECT_EQ(err.str(), "") << "one thread is done at once";
  line(1, 2);
  EXPECT_EQ(err.str(), restart + "checking thread 2 of 2");
  err.str("");
  line(2, 2);
  EXPECT_EQ(err.str(), restart);
  err.str("");
  line(7, 255);
  EXPECT_EQ(err.str(), restart + "checking thread 8 of 255");
  err.str("");
  line(7, 256);
  EXPECT_EQ(err.str(), "");
  line(16, 256);
  EXPECT_EQ(err.str(), restart + "checking thread 17 of 256");
}

}  // namespace
}  // namespace collect::ctl
