#include "storage/manifest.h"

#include <nlohmann/json.hpp>

#include "storage/manifest_file.h"
#include "tests/storage/fault_fs.h"
#include "tests/storage/power_loss_fs.h"
#include "tests/storage/session_fixture.h"

namespace collect::storage::test {
namespace {

Manifest full_manifest() {
  Manifest m;
  m.state = SessionState::kFailed;
  m.reason = "disk full";
  m.time_start_ns = 5;
  m.time_end_ns = 18'000'000'000'000'000'000ull;
  m.identity = test_identity();
  m.identity.device_id = "serial";
  m.identity.boot_id = "boot";
  m.identity.tag = "tag";
  m.identity.start_unix_ns = 77;
  m.identity.max_depth = 12;
  m.identity.longer_than_ns = 5000;
  m.created_unix_ns = 1;
  m.finished_unix_ns = 2;
  ManifestThread t;
  t.id = 3;
  t.stream_id = 9;
  t.thread_id = 4712;
  t.name = "main";
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
  m.threads = {t};
  m.modules = {
      {4159724229u,
       "/bin/program",
       {0x55, 0x0e, 0x84, 0, 0xe2, 0x9b, 0x41, 0xd4, 0xa7, 0x16, 0x44, 0x66, 0x55, 0x44, 0, 0},
       0x100000000,
       65536,
       50,
       60},
      {1, "[vdso]", {}, 0, 0, 0, 0}};
  m.symbols = {{0xf7f05ac500000001ull, "main"}};
  m.module_symbols = {{1, "", "no file", 3, 0}, {2, "/bin/x", "", 7, 6}};
  m.symbols_left_out = 4;
  m.symbols_state = SymbolsState::kFailed;
  m.symbols_tries = 2;
  m.gaps = {{3, Lane::kDetail, kLostOverwritten | kLostUnlinked, 8, 6, 5, 120, 130, 2}};
  m.input_missing = {{"pages that do not hold", 3}, {"the end of the session", 0}};
  m.input_missing_left_out = 7;
  m.detail_windows = {{"on", 10, 20, 5, 99, "command"}};
  m.detail_windows_left_out = 1;
  m.clock_syncs = {{100, -5, 3, 1.25, 1700, "of the collector"}};
  m.notes = {{1234, "reconnected"}};
  m.notes_left_out = 6;
  m.lost_without_stream = 8;
  m.totals = {1, 10, 4, 2, 1, 11, 4096, 5, 18'000'000'000'000'000'000ull, {5, 700, 600}};
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
}

// The keys and forms of the public format, as facts about it state them; values by hand.
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
  EXPECT_EQ(json["symbols_state"], "failed");
  EXPECT_EQ(json["symbols_tries"], 2);
  EXPECT_EQ(json["format_version"], "2.2");
  Manifest v1 = full_manifest();
  v1.identity.version = atf::Version::kV1;
  EXPECT_EQ(nlohmann::json::parse(manifest_to_json(v1))["format_version"], "2.1");
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

TEST(Manifest, TextThatIsNotUtf8IsReplacedNotRefused) {
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

TEST(Manifest, ReadsThePublicSamples) {
  const char* reference = std::getenv("COLLECT_REFERENCE");
  if (reference == nullptr) GTEST_SKIP() << "COLLECT_REFERENCE is not set";
  const std::filesystem::path given = std::filesystem::path(reference) / "data/atf";
  if (!std::filesystem::exists(given)) GTEST_SKIP() << given << " is not there";
  const std::filesystem::path samples = std::filesystem::canonical(given);  // below a root: no ".."
  PosixFs fs;
  size_t read = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(samples)) {
    if (entry.path().filename() != "manifest.json") continue;
    auto manifest = read_manifest(fs, entry.path().parent_path().string());
    ASSERT_OK(manifest);
    // They have no state: nobody's recording to recover.
    EXPECT_EQ(manifest->state, SessionState::kComplete);
    ++read;
  }
  EXPECT_GT(read, 10u);
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

TEST(Manifest, ALargeFileIsRefusedBeforeItIsRead) {
  TemporaryDirectory root;
  PosixFs fs;
  write_file(root.path() + "/manifest.json", {'{'});
  std::filesystem::resize_file(root.path() + "/manifest.json", kMaxManifestBytes + 1);
  const auto read = read_manifest(fs, root.path());
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.code(), Code::kLimit);
}

TEST(ManifestFile, TheOldOneStandsUntilTheNewOneIsWhole) {
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
