#include "storage/manifest/manifest.h"

#include <nlohmann/json.hpp>

#include "storage/manifest/manifest_file.h"
#include "tests/storage/fault_fs.h"
#include "tests/storage/power_loss_fs.h"
#include "tests/storage/session_fixture.h"

namespace collect::storage::test {
namespace {

SessionIdentity full_identity() {
  SessionIdentity identity = test_identity();
  identity.parent_pid = 4700;
  identity.executable = "/bin/program";
  identity.device_id = "serial";
  identity.device_model = "model";
  identity.agent_version = "1.2.3";
  identity.start_ns = 76;
  identity.boot_id = "boot";
  identity.tag = "tag";
  identity.start_unix_ns = 77;
  identity.max_depth = 12;
  identity.longer_than_ns = 5000;
  identity.max_rate = 600;
  return identity;
}

ManifestThread full_thread() {
  ManifestThread t;
  t.id = 3;
  t.stream_id = 9;
  t.thread_id = 4712;
  t.name = "main";
  t.names = {{100, "program"}, {150, "main"}};
  t.has_detail = true;
  t.ended = true;
  t.events = 10;
  t.detail_records = 4;
  t.lost_events = 2;
  t.lost_detail_records = 1;
  t.index_next = 11;
  t.detail_next = 5;
  t.start_ns = 100;
  t.calls_left_out = 11;
  t.end_ns = 200;
  t.first_ns = 101;
  t.last_ns = 199;
  t.stalls = {4, 90, 0};
  return t;
}

Manifest full_manifest() {
  Manifest m;
  m.state = SessionState::kFailed;
  m.reason = "disk full";
  m.sealing = true;
  m.sealing_state = SessionState::kComplete;
  m.time_start_ns = 5;
  m.time_end_ns = 18'000'000'000'000'000'000ull;
  m.identity = full_identity();
  m.created_unix_ns = 1;
  m.finished_unix_ns = 2;
  m.threads = {full_thread()};
  m.modules = {
      {4159724229u,
       "/bin/program",
       {0x55, 0x0e, 0x84, 0, 0xe2, 0x9b, 0x41, 0xd4, 0xa7, 0x16, 0x44, 0x66, 0x55, 0x44, 0, 0},
       0x100000000,
       65536,
       50,
       60},
      {1, "[vdso]", {}, 0, 0, 0, 0}};
  m.symbols = {{0xf7f05ac500000001ull, "main", "src/main.c", 12}, {0xf7f05ac500000002ull, "f"}};
  m.module_symbols = {{1, "", "no file", 3, 0}, {2, "/bin/x", "", 7, 6}};
  m.symbols_left_out = 4;
  m.symbols_state = SymbolsState::kFailed;
  m.symbols_tries = 2;
  m.gaps = {{3, Lane::kDetail, kLostOverwritten | kLostUnlinked, 8, 6, 5, 120, 130, 2}};
  m.stalls = {make_stall(StallKind::kStopped, 10, 30), {StallKind::kPageWait, 40, 90, 35, 4, 3}};
  m.input_missing = {{"damaged pages", 3}, {"the end of the session", 0}};
  m.input_missing_left_out = 7;
  m.detail_windows = {{"on", 10, 20, 5, 99, "command"}};
  m.detail_windows_left_out = 1;
  m.function_filters = {{15, {"a*", "b"}, {"ab"}, 30}, {16, {}, {"c"}, 31}, {17, {}, {}, 32}};
  m.function_filters[1].switched_off = {{18, 0x100000007, 900}};
  m.function_filters_left_out = 3;
  m.clock_syncs = {{100, -5, 3, 1.25, 1700, "of the collector"}};
  m.notes = {{1234, "reconnected"}};
  m.notes_left_out = 6;
  m.passthrough_streams = {{PassthroughKind::kDial9, 33, 5, "tag: at 33"}};
  m.containers = {{"capture-000002.rtc", "finished", 900, 101, 150},
                  {"capture-000003.rtc", "open", 800, 151, 199}};
  m.containers_removed = 1;
  m.markers = {{120, "here"}};
  m.markers_left_out = 9;
  m.lost_without_stream = 8;
  m.totals = {1, 10, 4, 2, 1, 11, 4096, 0, 5, 18'000'000'000'000'000'000ull, {5, 700, 600}};
  return m;
}

TEST(Manifest, ReadsWhatItWrites) {
  const std::string json = manifest_to_json(full_manifest());
  auto read = manifest_from_json(json);
  ASSERT_OK(read);
  EXPECT_EQ(manifest_to_json(*read), json);
  EXPECT_EQ(read->gaps[0].reasons, uint32_t(kLostOverwritten | kLostUnlinked));
  EXPECT_EQ(read->clock_syncs[0].offset_ns, -5);
  EXPECT_EQ(read->clock_syncs[0].at_unix_ns, 1700u);
  EXPECT_EQ(read->clock_syncs[0].boot_id, "of the collector");
  EXPECT_EQ(read->modules[0].build_id.size(), 16u);
  EXPECT_EQ(read->totals.last_ns, 18'000'000'000'000'000'000ull);
  EXPECT_EQ(read->totals.container_bytes, 900u + 800u);
}

// The keys and forms of the public format, as facts about it state them; values by hand.
TEST(Manifest, KeepsTheNamesOfAThread) {
  ManifestThread thread;
  thread.start_ns = 10;
  rename_thread(thread, "", 5);
  rename_thread(thread, "first", 5);
  EXPECT_EQ(thread.name, "first");
  EXPECT_TRUE(thread.names.empty());
  rename_thread(thread, "first", 20);
  EXPECT_TRUE(thread.names.empty()) << "a repeat";
  rename_thread(thread, "second", 30);
  rename_thread(thread, "third", 25);
  using Names = std::vector<ThreadName>;
  EXPECT_EQ(thread.names, (Names{{10, "first"}, {30, "second"}, {30, "third"}}));
  rename_thread(thread, "second", 30);
  EXPECT_EQ(thread.name, "third") << "added again";
  for (uint64_t n = 0; n < 2 * kMaxThreadNames; ++n) {
    rename_thread(thread, "name " + std::to_string(n), 40 + n);
  }
  ASSERT_EQ(thread.names.size(), kMaxThreadNames);
  EXPECT_EQ(thread.names[kMaxThreadNames - 2].name, "name " + std::to_string(kMaxThreadNames - 5));
  EXPECT_EQ(thread.names.back().name, thread.name);
  EXPECT_EQ(thread.name, "name " + std::to_string(2 * kMaxThreadNames - 1));
  // A manifest of someone else's may list more.
  auto json = nlohmann::json::parse(manifest_to_json(full_manifest()));
  for (int n = 0; n < 1000; ++n) json["threads"][0]["names"].push_back({{"from_ns", n}});
  const auto read = manifest_from_json(json.dump());
  ASSERT_OK(read);
  EXPECT_EQ(read->threads[0].names.size(), kMaxThreadNames);
}

TEST(Manifest, HasThePublicKeysInThePublicForms) {
  const auto json = nlohmann::json::parse(manifest_to_json(full_manifest()));
  EXPECT_EQ(json["threads"][0]["id"], 3);
  EXPECT_EQ(json["threads"][0]["has_detail"], true);
  EXPECT_EQ(json["time_start_ns"], 5);
  EXPECT_EQ(json["clock_type"], 3);
  EXPECT_EQ(json["modules"][0]["base_address"], "0x100000000");
  EXPECT_EQ(json["modules"][0]["size"], 65536);
  EXPECT_EQ(json["modules"][0]["uuid"], "550e8400-e29b-41d4-a716-446655440000");
  EXPECT_FALSE(json["modules"][1].contains("base_address"));
  EXPECT_FALSE(json["modules"][1].contains("size"));
  EXPECT_FALSE(json["modules"][1].contains("uuid"));
  EXPECT_EQ(json["symbols"][0]["function_id"], "0xf7f05ac500000001");
  EXPECT_EQ(json["symbols"][0]["module_id"], 4159724229u);
  EXPECT_EQ(json["symbols"][0]["symbol_index"], 1);
  EXPECT_EQ(json["symbols"][0]["name"], "main");
  EXPECT_EQ(json["symbols"][0]["file"], "src/main.c");
  EXPECT_EQ(json["symbols"][0]["line"], 12);
  EXPECT_FALSE(json["symbols"][1].contains("file"));
  EXPECT_EQ(json["symbols_state"], "failed");
  EXPECT_EQ(json["symbols_tries"], 2);
  EXPECT_EQ(json["format_version"], "2.2");
  Manifest v1 = full_manifest();
  v1.identity.version = atf::Version::kV1;
  EXPECT_EQ(nlohmann::json::parse(manifest_to_json(v1))["format_version"], "2.1");
}

// Every key of STORAGE.md "Manifest", by hand, for full_manifest().
constexpr char kFullJson[] = R"({
  "format_version": "2.2", "clock_type": 3, "state": "failed", "reason": "disk full",
  "sealing": "complete", "time_start_ns": 5, "time_end_ns": 18000000000000000000,
  "created_unix_ns": 1, "finished_unix_ns": 2,
  "process": {"process_id": "0102030405060708090a0b0c0d0e0f10", "recording": 1, "pid": 4711,
              "parent_pid": 4700, "name": "program", "executable": "/bin/program",
              "device_id": "serial", "device_model": "model", "boot_id": "boot", "tag": "tag",
              "agent_version": "1.2.3", "arch": 1, "os": 4, "atf_version": 2, "start_ns": 76,
              "start_unix_ns": 77, "max_depth": 12, "longer_than_ns": 5000, "max_rate": 600},
  "threads": [{"id": 3, "stream_id": 9, "thread_id": 4712, "name": "main",
               "names": [{"from_ns": 100, "name": "program"}, {"from_ns": 150, "name": "main"}],
               "has_detail": true,
               "ended": true, "events": 10, "detail_records": 4, "lost_events": 2,
               "lost_detail_records": 1, "calls_left_out": 11, "index_next": 11, "detail_next": 5,
               "start_ns": 100, "end_ns": 200, "time_start_ns": 101, "time_end_ns": 199,
               "stall_count": 4, "stalled_ns": 90}],
  "modules": [{"module_id": 4159724229, "path": "/bin/program", "base_address": "0x100000000",
               "size": 65536, "uuid": "550e8400-e29b-41d4-a716-446655440000",
               "build_id": "550e8400e29b41d4a716446655440000", "loaded_ns": 50, "unloaded_ns": 60},
              {"module_id": 1, "path": "[vdso]", "loaded_ns": 0}],
  "symbols": [{"function_id": "0xf7f05ac500000001", "module_id": 4159724229, "symbol_index": 1,
               "name": "main", "file": "src/main.c", "line": 12},
              {"function_id": "0xf7f05ac500000002", "module_id": 4159724229, "symbol_index": 2,
               "name": "f"}],
  "module_symbols": [{"module_id": 1, "functions": 3, "named": 0, "problem": "no file"},
                     {"module_id": 2, "functions": 7, "named": 6, "source": "/bin/x"}],
  "symbols_left_out": 4, "symbols_state": "failed", "symbols_tries": 2,
  "gaps": [{"thread": 3, "lane": "detail", "before_seq": 8, "lost": 6, "numbered_lost": 5,
            "first_ns": 120, "last_ns": 130, "reasons": ["overwritten", "unlinked"],
            "merged": 2}],
  "stalls": [{"kind": "stopped", "first_ns": 10, "last_ns": 30},
             {"kind": "page_wait", "first_ns": 40, "last_ns": 90, "thread": 3, "joined": 4,
              "stalled_ns": 35}],
  "input_missing": [{"what": "damaged pages", "count": 3},
                    {"what": "the end of the session"}],
  "input_missing_left_out": 7,
  "detail_windows": [{"mode": "on", "start_ns": 10, "end_ns": 20, "pre_roll_from_ns": 5,
                      "pre_roll_records": 99, "reason": "command"}],
  "detail_windows_left_out": 1,
  "function_filters": [
    {"at_ns": 15, "mode": "only", "only": ["a*", "b"], "except": ["ab"], "functions": 30},
    {"at_ns": 16, "mode": "all_but", "only": [], "except": ["c"], "functions": 31,
     "switched_off": [{"at_ns": 18, "function_id": "0x100000007", "calls_per_second": 900}]},
    {"at_ns": 17, "mode": "everything", "only": [], "except": [], "functions": 32}],
  "function_filters_left_out": 3,
  "clock_sync": [{"at_ns": 100, "offset_ns": -5, "uncertainty_ns": 3, "drift_ppb": 1.25,
                  "at_unix_ns": 1700, "boot_id": "of the collector"}],
  "events": [{"at_unix_ns": 1234, "what": "reconnected"}], "events_left_out": 6,
  "streams": [{"kind": "dial9", "file": "stream.dial9", "bytes": 33, "refused_bytes": 5,
                       "problem": "tag: at 33"}],
  "containers": [{"name": "capture-000002.rtc", "state": "finished", "bytes": 900,
                  "first_ns": 101, "last_ns": 150},
                 {"name": "capture-000003.rtc", "state": "open", "bytes": 800, "first_ns": 151,
                  "last_ns": 199}],
  "containers_removed": 1,
  "markers": [{"at_ns": 120, "text": "here"}], "markers_left_out": 9,
  "totals": {"threads": 1, "events": 10, "detail_records": 4, "lost_events": 2,
             "lost_detail_records": 1, "calls_left_out": 11, "lost_without_stream": 8,
             "stored_bytes": 4096, "stall_count": 5, "stalled_ns": 700, "page_wait_ns": 600}
})";

TEST(Manifest, HasEveryKeyOfTheDocument) {
  const auto expected = nlohmann::json::parse(kFullJson);
  const auto written = nlohmann::json::parse(manifest_to_json(full_manifest()));
  EXPECT_EQ(written, expected) << nlohmann::json::diff(expected, written).dump(1);
  const auto read = manifest_from_json(kFullJson);
  ASSERT_OK(read);
  const auto again = nlohmann::json::parse(manifest_to_json(*read));
  EXPECT_EQ(again, expected) << nlohmann::json::diff(expected, again).dump(1);
}

// What is absent, zero or empty has no key, where the document says so.
TEST(Manifest, OmitsKeysOfAbsentValues) {
  Manifest empty;
  empty.threads.resize(1);
  empty.gaps.resize(1);
  empty.passthrough_streams.resize(1);
  const auto json = nlohmann::json::parse(manifest_to_json(empty));
  for (const char* key :
       {"sealing", "stalls", "input_missing", "input_missing_left_out", "detail_windows_left_out",
        "function_filters", "function_filters_left_out", "events_left_out", "symbols_left_out",
        "symbols_state", "symbols_tries", "containers_removed", "markers_left_out"}) {
    EXPECT_FALSE(json.contains(key)) << key;
  }
  for (const char* key : {"end", "max_depth", "longer_than_ns", "max_rate"}) {
    EXPECT_FALSE(json["process"].contains(key)) << key;
  }
  EXPECT_FALSE(json["threads"][0].contains("calls_left_out"));
  EXPECT_FALSE(json["gaps"][0].contains("merged"));
  EXPECT_FALSE(json["streams"][0].contains("refused_bytes"));
  EXPECT_FALSE(json["streams"][0].contains("problem"));
  EXPECT_FALSE(json["totals"].contains("calls_left_out"));
  for (const char* key : {"threads", "modules", "symbols", "gaps", "detail_windows", "clock_sync",
                          "events", "module_symbols", "containers", "markers"}) {
    EXPECT_TRUE(json.at(key).is_array()) << key;
  }
  const auto read = manifest_from_json(manifest_to_json(empty));
  ASSERT_OK(read);
  EXPECT_EQ(read->gaps.at(0).merged, 1u);
  EXPECT_FALSE(read->sealing);
}

TEST(Manifest, ChangeHoldsOnlyWhatIsNew) {
  Manifest change;
  EXPECT_EQ(nlohmann::json::parse(manifest_delta_to_json(change)),
            nlohmann::json::parse(R"({"threads": []})"));
  change = full_manifest();
  const auto json = nlohmann::json::parse(manifest_delta_to_json(change));
  const auto full = nlohmann::json::parse(kFullJson);
  EXPECT_EQ(json.size(), 9u);
  for (const char* key : {"threads", "modules", "stalls", "detail_windows", "function_filters",
                          "clock_sync", "events", "markers", "totals"}) {
    EXPECT_EQ(json.at(key), full.at(key)) << key;
  }
  EXPECT_EQ(manifest_delta_to_json(change).find('\n'), std::string::npos);
}

// Values of another type or beyond their width are as good as missing.
TEST(Manifest, ValuesThatCannotBeAreNone) {
  const auto read = manifest_from_json(R"({
    "threads": [{"id": 4294967295}, {"id": 4294967296}, {"id": "7"}, {"name": 7},
                {"id": 5, "name": 7, "ended": 1, "events": -1}, {"id": 5, "name": "again"}],
    "modules": [{"module_id": 1, "build_id": "abx0", "base_address": "17"},
                {"module_id": 2, "build_id": "0aFf", "size": 1.5},
                {"module_id": 3, "base_address": "0xfF"}, {"build_id": "00"}],
    "gaps": [{"thread": 5, "lost": 1, "reasons": ["ring_full", "unheard of", 3]},
             {"thread": 5, "lost": 1, "reasons": 7, "lane": "index"}, {"thread": 5}],
    "function_filters": [{"only": "all", "except": [1, "x"],
                          "switched_off": [7, {"function_id": 5}, {"function_id": "0x5"}]}],
    "clock_sync": [{"drift_ppb": "fast"}, {"drift_ppb": 2}],
    "streams": [{"kind": "of later", "bytes": 9}, 4, {"kind": "dial9", "bytes": 1},
                        {"kind": "dial9", "bytes": 2}],
    "process": {"process_id": "0102", "end": {"how": "of later"}},
    "symbols_state": "of later", "state": "of later", "totals": 3, "markers": {}})");
  ASSERT_OK(read);
  ASSERT_EQ(read->threads.size(), 2u) << "those with a number, once each";
  EXPECT_EQ(read->threads[0].id, UINT32_MAX);
  EXPECT_EQ(read->threads[1].name, "");
  EXPECT_FALSE(read->threads[1].ended);
  EXPECT_EQ(read->threads[1].events, 0u);
  ASSERT_EQ(read->modules.size(), 3u);
  EXPECT_TRUE(read->modules[0].build_id.empty());
  EXPECT_EQ(read->modules[0].base_address, 0u);
  EXPECT_EQ(read->modules[1].build_id, (std::vector<uint8_t>{0x0a, 0xff}));
  EXPECT_EQ(read->modules[1].size, 0u);
  EXPECT_EQ(read->modules[2].base_address, 0xffu);
  ASSERT_EQ(read->gaps.size(), 2u);
  EXPECT_EQ(read->gaps[0].reasons, uint32_t(kLostRingFull));
  EXPECT_EQ(read->gaps[1].reasons, 0u);
  EXPECT_TRUE(read->function_filters[0].only.empty());
  EXPECT_EQ(read->function_filters[0].except, std::vector<std::string>{"x"});
  EXPECT_EQ(read->function_filters[0].switched_off,
            std::vector<SwitchedOffFunction>{(SwitchedOffFunction{0, 5, 0})});
  EXPECT_EQ(read->clock_syncs[0].drift_ppb, 0);
  EXPECT_EQ(read->clock_syncs[1].drift_ppb, 2);
  ASSERT_EQ(read->passthrough_streams.size(), 1u);
  EXPECT_EQ(read->passthrough_streams[0].bytes, 1u);
  EXPECT_EQ(read->identity.process_id, SessionIdentity().process_id);
  EXPECT_EQ(read->process_end.how, ProcessEnd::How::kNotKnown);
  EXPECT_EQ(read->symbols_state, SymbolsState::kNone);
  EXPECT_EQ(read->state, SessionState::kRecording);
  EXPECT_EQ(read->totals.events, 0u);
  EXPECT_TRUE(read->markers.empty());
}

// Others' files tell their version in format_version alone, ours in the process.
TEST(Manifest, ReadsTheVersionOfTheProcess) {
  const auto version_of = [](const char* json) {
    return manifest_from_json(json)->identity.version;
  };
  EXPECT_EQ(version_of(R"({"threads":[]})"), atf::Version::kV1);
  EXPECT_EQ(version_of(R"({"threads":[],"format_version":"2.1"})"), atf::Version::kV1);
  EXPECT_EQ(version_of(R"({"threads":[],"format_version":"2.2"})"), atf::Version::kV2);
  EXPECT_EQ(version_of(R"({"threads":[],"format_version":"2.2","process":{"atf_version":1}})"),
            atf::Version::kV1);
  EXPECT_EQ(version_of(R"({"threads":[],"format_version":"2.1","process":{"atf_version":2}})"),
            atf::Version::kV2);
}

TEST(Manifest, EveryNameIsReadAgain) {
  for (const SessionState state : {SessionState::kRecording, SessionState::kComplete,
                                   SessionState::kRecovered, SessionState::kFailed}) {
    for (const SymbolsState symbols : {SymbolsState::kNone, SymbolsState::kPending,
                                       SymbolsState::kDone, SymbolsState::kFailed}) {
      Manifest m;
      m.state = state;
      m.symbols_state = symbols;
      const auto read = manifest_from_json(manifest_to_json(m));
      ASSERT_OK(read);
      EXPECT_EQ(read->state, state);
      EXPECT_EQ(read->symbols_state, symbols);
    }
  }
  EXPECT_EQ(lost_reason_names(kLostDamaged | kLostRingFull),
            (std::vector<std::string>{"ring_full", "damaged"}));
}

// Cut in front of the character that does not fit, never within it.
TEST(Manifest, LongTextIsCutBetweenCharacters) {
  const std::string fill(kMaxTextBytes - 4, 'x');
  const auto cut = [](std::string text) {
    bound_text(text);
    return text;
  };
  EXPECT_EQ(cut(fill + "1234"), fill + "1234");
  EXPECT_EQ(cut(fill + "12345"), fill + "1234");
  EXPECT_EQ(cut(fill + "\xf0\x9f\x98\x80y"), fill + "\xf0\x9f\x98\x80");
  EXPECT_EQ(cut(fill + "1\xf0\x9f\x98\x80"), fill + "1");
  EXPECT_EQ(cut(fill + "12\xf0\x9f\x98\x80"), fill + "12");
  EXPECT_EQ(cut(fill + "123\xf0\x9f\x98\x80"), fill + "123");
  // No UTF-8: nothing to look for further back.
  EXPECT_EQ(cut(std::string(kMaxTextBytes + 9, '\x80')).size(), kMaxTextBytes - 3);
}

TEST(Manifest, ListsOfOthersAndOfMissingInputAreBounded) {
  Manifest m;
  for (size_t i = 0; i < kMaxMissingInput + 2; ++i) {
    add_missing_input(m, {std::string(kMaxTextBytes + 1, 'x'), i});
  }
  EXPECT_EQ(m.input_missing.size(), kMaxMissingInput);
  EXPECT_EQ(m.input_missing_left_out, 2u);
  EXPECT_EQ(m.input_missing.back().what.size(), kMaxTextBytes);

  nlohmann::json filter = {{"only", nlohmann::json::array()}};
  for (size_t i = 0; i < kMaxFilterPatterns + 1; ++i) {
    filter["only"].push_back(std::string(kMaxTextBytes + 1, 'y'));
  }
  const nlohmann::json manifest = {{"threads", nlohmann::json::array()},
                                   {"function_filters", {filter}}};
  const auto read = manifest_from_json(manifest.dump());
  ASSERT_OK(read);
  ASSERT_EQ(read->function_filters.size(), 1u);
  EXPECT_EQ(read->function_filters[0].only.size(), size_t{kMaxFilterPatterns});
  EXPECT_EQ(read->function_filters[0].only.back().size(), kMaxTextBytes);
}

TEST(Manifest, SaysHowTheProcessEnded) {
  using How = ProcessEnd::How;
  struct End {
    ProcessEnd end;
    const char* json;
  };
  const End ends[] = {
      {{How::kExited, -3, 0, false}, R"({"how":"exited","exit_code":-3})"},
      {{How::kSignaled, 0, 11, true}, R"({"how":"signaled","signal":11,"core_dumped":true})"},
      {{How::kSignaled, 0, 9, false}, R"({"how":"signaled","signal":9,"core_dumped":false})"},
      {{How::kExeced, 0, 0, false}, R"({"how":"execed"})"},
      {{How::kUnknown, 0, 0, false}, R"({"how":"unknown"})"}};
  for (const auto& [end, expected] : ends) {
    Manifest manifest = full_manifest();
    manifest.process_end = end;
    const std::string text = manifest_to_json(manifest);
    EXPECT_EQ(nlohmann::json::parse(text)["process"]["end"], nlohmann::json::parse(expected));
    const auto read = manifest_from_json(text);
    ASSERT_OK(read);
    EXPECT_TRUE(read->process_end == end) << expected;
  }
  const auto running = nlohmann::json::parse(manifest_to_json(full_manifest()));
  EXPECT_FALSE(running["process"].contains("end"));
}

// What did not fit is counted, and the counts are read again.
TEST(Manifest, CountsOfWhatIsLeftOutHaveTheirKeys) {
  Manifest m = full_manifest();
  m.detail_windows_left_out = 1;
  m.function_filters_left_out = 2;
  m.markers_left_out = 3;
  m.notes_left_out = 4;
  m.symbols_left_out = 5;
  const std::string text = manifest_to_json(m);
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json["detail_windows_left_out"], 1);
  EXPECT_EQ(json["function_filters_left_out"], 2);
  EXPECT_EQ(json["markers_left_out"], 3);
  EXPECT_EQ(json["events_left_out"], 4);
  EXPECT_EQ(json["symbols_left_out"], 5);
  const auto read = manifest_from_json(text);
  ASSERT_OK(read);
  EXPECT_EQ(read->function_filters_left_out, 2u);
  EXPECT_EQ(read->markers_left_out, 3u);
  EXPECT_EQ(read->notes_left_out, 4u);
}

TEST(Manifest, ReplacesTextThatIsNotUtf8) {
  Manifest m = full_manifest();
  m.threads[0].name = std::string("a\xff\xfe\x80z\0b\x01\"\\", 10);
  m.identity.process_name = "\xed\xa0\x80";
  m.modules[0].path = "/bin/\xc3";
  const std::string json = manifest_to_json(m);
  const auto parsed = nlohmann::json::parse(json);
  const std::string name = parsed["threads"][0]["name"];
  EXPECT_EQ(name.substr(0, 4), "a\xef\xbf\xbd");
  EXPECT_NE(name.find('z'), std::string::npos);
  EXPECT_OK(manifest_from_json(json));
}

TEST(Manifest, ReadsTheSamples) {
  PosixFs fs;
  for (const auto& given : reference::sample_folders("data/atf")) {
    const auto samples = std::filesystem::canonical(given);  // below a root: no ".."
    size_t read = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(samples)) {
      if (entry.path().filename() != "manifest.json") continue;
      auto manifest = read_manifest(fs, entry.path().parent_path().string());
      ASSERT_OK(manifest);
      // They have no state: no one's recording to recover.
      EXPECT_EQ(manifest->state, SessionState::kComplete);
      ++read;
    }
    EXPECT_GT(read, 10u);
  }
}

TEST(Manifest, SurvivesEveryPrefixAndEveryFlip) {
  const std::string json = manifest_to_json(full_manifest());
  for (size_t length = 0; length + 2 < json.size(); ++length) {
    EXPECT_FALSE(manifest_from_json(std::string_view(json).substr(0, length)).ok()) << length;
  }
  for (size_t at = 0; at < json.size(); ++at) {
    for (const uint8_t flip : std::initializer_list<uint8_t>{0x01, 0x80}) {
      std::string damaged = json;
      damaged[at] = char(uint8_t(damaged[at]) ^ flip);
      const auto read = manifest_from_json(damaged);
      if (read.ok()) (void)manifest_to_json(*read);
    }
  }
  std::string deep(200'000, '[');
  EXPECT_FALSE(manifest_from_json(deep).ok());
  EXPECT_FALSE(manifest_from_json("{\"threads\":3}").ok());
  EXPECT_FALSE(manifest_from_json("[]").ok());
  EXPECT_OK(manifest_from_json("{\"threads\":[{\"id\":-1},7,null,{\"id\":99999999999}]}"));
}

// Manifests of others: bytes of text must not become hundreds of bytes of memory each, nor may the
// keys of an object be compared with each other.
TEST(Manifest, NoTextCostsMoreThanItsBound) {
  std::string keys = "{\"threads\":[]";
  for (int i = 0; i < 400'000; ++i) keys += ",\"" + std::to_string(i) + "\":0";
  EXPECT_OK(manifest_from_json(keys + "}"));

  std::string values = "{\"threads\":[";
  while (values.size() < 3 * kManifestShape.values + 30) values += "[],[],[],[],[],[],[],[],";
  const auto too_many = manifest_from_json(values + "0]}");
  ASSERT_FALSE(too_many.ok());
  EXPECT_EQ(too_many.code(), Code::kLimit);
  EXPECT_NE(too_many.error().message.find("more than 16777216 values"), std::string::npos);

  std::string list = "{\"threads\":[0";
  for (size_t i = 0; i < kMaxManifestList; ++i) list += ",0";
  const auto too_long = manifest_from_json(list + "]}");
  ASSERT_FALSE(too_long.ok());
  EXPECT_EQ(too_long.code(), Code::kLimit);
}

TEST(Manifest, LargeFileIsRefusedBeforeItIsRead) {
  TemporaryDirectory root;
  PosixFs fs;
  write_file(root.path() + "/manifest.json", {'{'});
  std::filesystem::resize_file(root.path() + "/manifest.json", kMaxManifestBytes + 1);
  const auto read = read_manifest(fs, root.path());
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.code(), Code::kLimit);
}

TEST(ManifestFile, OldOneRemainsUntilTheNewOneIsWhole) {
  for (const bool crash : {false, true}) {
    for (uint64_t k = 0;; ++k) {
      TemporaryDirectory root;
      PosixFs real;
      Manifest old = full_manifest();
      ASSERT_OK(write_manifest(real, root.path(), old, true));
      Manifest changed = old;
      changed.reason = "changed";
      FaultFs fs({k, Code::kNoSpace, crash, true});
      const Status status = write_manifest(fs, root.path(), changed, true);
      auto read = read_manifest(real, root.path());
      ASSERT_OK(read);
      EXPECT_TRUE(read->reason == old.reason || read->reason == changed.reason);
      if (status.ok()) {
        EXPECT_EQ(read->reason, changed.reason);
        EXPECT_EQ(fs.failed(), false);
        break;
      }
      // Its blocks are given back at once; what a crash leaves does not get in the way of the next.
      EXPECT_TRUE(crash || !real.exists(root.path() + "/manifest.json.new")) << k;
      ASSERT_OK(write_manifest(real, root.path(), changed, false));
      EXPECT_FALSE(real.exists(root.path() + "/manifest.json.new"));
    }
  }
}

TEST(ManifestFile, PowerLossLeavesOneOfTheTwo) {
  for (uint64_t k = 0; k < 12; ++k) {
    TemporaryDirectory root;
    FaultFs faulty;
    PowerLossFs fs(faulty, root.path());
    Manifest m = full_manifest();
    ASSERT_OK(write_manifest(fs, root.path(), m, true));
    faulty.set_plan({faulty.changes() + k, Code::kIo, true, true});
    m.reason = "changed";
    const Status status = write_manifest(fs, root.path(), m, true);
    fs.lose_power(Kept::kSome, k);
    PosixFs real;
    auto read = read_manifest(real, root.path());
    ASSERT_OK(read);
    EXPECT_TRUE(!status.ok() || read->reason == "changed");
  }
}

}  // namespace
}  // namespace collect::storage::test
