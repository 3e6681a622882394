// Every sample and every vector of the reference pack gives what is written beside it: counts and
// times, the digest of the whole dump, and for vectors the outcome of the strict decoder and the
// lines that the published one shows.
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "formats/dial9/check.h"
#include "tests/formats/dial9/recorded.h"
#include "tests/formats/dial9/reference_files.h"

namespace collect::dial9 {
namespace {

using nlohmann::json;
using testing::file_text;
using testing::reference_folder;
namespace fs = std::filesystem;

json to_json(const std::optional<uint64_t>& number) {
  return number ? json(*number) : json();
}

json summary_of(const Report& report) {
  json types = json::object();
  for (size_t type = 0; type < report.field_types.size(); ++type) {
    if (report.field_types[type] != 0) types[std::to_string(type)] = report.field_types[type];
  }
  return {{"format", "dial9"},
          {"bytes", report.bytes},
          {"result", report.problem ? "error" : "end"},
          {"error", nullptr},
          {"sub_streams", report.sub_streams},
          {"frames",
           {{"schemas", report.schemas},
            {"events", report.events},
            {"string_pools", report.string_pools},
            {"stack_pools", report.stack_pools},
            {"resets", report.resets},
            {"annotations", report.annotations}}},
          {"pool_strings", report.pool_strings},
          {"pool_stacks", report.pool_stacks},
          {"events_by_name", report.events_by_name},
          {"field_types", types},
          {"events_without_time", report.times.events_without_time},
          {"first_ts", to_json(report.times.first_ns)},
          {"last_ts", to_json(report.times.last_ns)},
          {"min_ts", to_json(report.times.min_ns)},
          {"min_nonzero_ts", to_json(report.times.min_nonzero_ns)},
          {"max_ts", to_json(report.times.max_ns)},
          {"events_older_than_an_earlier_one", report.times.older_as_written}};
}

std::string sha256_of(const std::string& text) {
  const fs::path path =
      fs::path(::testing::TempDir()) / ("dial9_lines_" + std::to_string(getpid()));
  testing::write_file(path, {text.begin(), text.end()});
  const testing::Ran ran = testing::run("sha256sum '" + path.string() + "'");
  fs::remove(path);
  EXPECT_EQ(ran.status, 0);
  return ran.out.substr(0, 64);
}

TEST(Samples, GiveTheirExpectedResult) {
  const fs::path reference = reference_folder();
  if (reference.empty()) GTEST_SKIP() << "COLLECT_REFERENCE names no folder";
  size_t compared = 0;
  for (const auto& entry : fs::directory_iterator(reference / "data" / "dial9")) {
    const std::string path = entry.path().string();
    if (!path.ends_with(".expected.json")) continue;
    const json expected = json::parse(file_text(path), nullptr, false);
    ASSERT_FALSE(expected.is_discarded()) << path;
    const fs::path sample = entry.path().parent_path() / expected["sample"].get<std::string>();
    const std::vector<uint8_t> bytes = testing::unpacked_bytes(sample);
    const Report report = check_stream(bytes);
    EXPECT_EQ(report.grade, Grade::kOk) << path;
    EXPECT_EQ(report.findings.errors(), 0u) << path;
    const json summary = summary_of(report);
    for (const auto& [key, value] : summary.items()) EXPECT_EQ(value, expected[key]) << path << key;
    EXPECT_EQ(json(sha256_of(testing::json_lines(bytes))), expected["jsonl_sha256"]) << path;
    EXPECT_TRUE(looks_like_dial9(Bytes(bytes).first(16)));
    ++compared;
  }
  EXPECT_EQ(compared, 5u);
}

// Pushed in pieces of odd sizes, a real file shows the same.
TEST(Samples, InPiecesShowTheSameLines) {
  const fs::path reference = reference_folder();
  if (reference.empty()) GTEST_SKIP() << "COLLECT_REFERENCE names no folder";
  const std::vector<uint8_t> bytes =
      testing::unpacked_bytes(reference / "data" / "dial9" / "demo-2026-03-18-94300d9.bin");
  const std::string whole = testing::json_lines(bytes);
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{1448}, size_t{100000}}) {
    VectorSink sink;
    JsonLines lines(sink);
    StreamDecoder decoder;
    for (size_t at = 0; at < bytes.size(); at += piece) {
      const size_t size = std::min(piece, bytes.size() - at);
      ASSERT_NE(decoder.push(Bytes(bytes).subspan(at, size), lines), DecodeState::kFailed);
      ASSERT_EQ(decoder.whole_bytes() + decoder.rest().size(), at + size);
    }
    ASSERT_TRUE(lines.finish(decoder.finish()).ok());
    EXPECT_EQ(std::string(sink.bytes().begin(), sink.bytes().end()), whole) << piece;
  }
}

TEST(Samples, ClockSyncAndRangeOfTheNewest) {
  const fs::path reference = reference_folder();
  if (reference.empty()) GTEST_SKIP() << "COLLECT_REFERENCE names no folder";
  const Report report = check_stream(
      testing::unpacked_bytes(reference / "data" / "dial9" / "demo-2026-05-15-96eba01.bin.gz"));
  // As d9dump.py shows the first ClockSyncEvent.
  ASSERT_TRUE(report.times.clock_sync.has_value());
  EXPECT_EQ(report.times.clock_sync->time_ns, 503226032430072u);
  EXPECT_EQ(report.times.clock_sync->realtime_ns, 1778867710078081994u);
  EXPECT_EQ(report.times.range_begin_ns, 503226032430072u);
  EXPECT_EQ(report.times.range_end_ns, 503230842286478u);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  size_t at = 0;
  for (size_t end; (end = text.find('\n', at)) != std::string::npos; at = end + 1)
    lines.push_back(text.substr(at, end - at));
  return lines;
}

void compare_golden(const std::string& name, const fs::path& path, const json& vector,
                    const std::vector<std::string>& ours) {
  const std::vector<std::string> golden = lines_of(file_text(path));
  if (vector["d9dump_equals_golden"] == true) {
    EXPECT_EQ(ours, golden) << name;
    return;
  }
  // Where the strict reading differs, it differs in the frame that it refuses: all lines before it
  // are those of the published decoder, up to that one's own end.
  // Two vectors read to the end both ways and show a line differently: the text of a pool entry
  // that is not UTF-8, and the type_id of annotations beyond 65,535.
  if (name == "q_utf8_pool" || name == "q_annot_id_65536_aliases_0") {
    EXPECT_EQ(ours.size(), golden.size()) << name;
    EXPECT_NE(ours, golden) << name;
    return;
  }
  const size_t common = std::min(ours.size(), golden.size()) - 1;
  EXPECT_GE(golden.size(), ours.size() - 1) << name;
  for (size_t i = 0; i < common; ++i) EXPECT_EQ(ours[i], golden[i]) << name << " line " << i;
}

TEST(Vectors, GiveTheStrictOutcomeAndTheGoldenLines) {
  const fs::path reference = reference_folder();
  if (reference.empty()) GTEST_SKIP() << "COLLECT_REFERENCE names no folder";
  const fs::path folder = reference / "data" / "dial9";
  const json vectors = json::parse(file_text(folder / "vectors.json"), nullptr, false);
  ASSERT_FALSE(vectors.is_discarded());
  size_t golden = 0;
  for (const auto& [name, vector] : vectors.items()) {
    const std::vector<uint8_t> bytes = testing::file_bytes(folder / "vectors" / (name + ".bin"));
    ASSERT_EQ(bytes.size(), vector["bytes"]) << name;
    const Report report = check_stream(bytes);
    const json& strict = vector["d9dump"];
    EXPECT_EQ(report.problem ? "error" : "end", strict["result"]) << name;
    EXPECT_EQ(report.events, strict["events"]) << name;
    EXPECT_EQ(report.grade == Grade::kOk, strict["result"] == "end") << name;
    if (report.problem) {
      EXPECT_EQ(report.problem->frame_offset, strict["at"]) << name;
      EXPECT_EQ(report.whole_bytes, strict["at"]) << name;
    }
    const std::vector<std::string> ours = lines_of(testing::json_lines(bytes));
    if (vector["golden"] == true) {
      compare_golden(name, folder / "golden" / (name + ".jsonl"), vector, ours);
      ++golden;
    }
  }
  EXPECT_EQ(vectors.size(), 54u);
  EXPECT_EQ(golden, 51u);
}

// The lines of the independent decoder, for all vectors; only its words for an error are its own.
TEST(Vectors, ShowTheLinesOfTheIndependentDecoder) {
  const fs::path reference = reference_folder();
  if (reference.empty()) GTEST_SKIP() << "COLLECT_REFERENCE names no folder";
  if (!testing::has_python()) GTEST_SKIP() << "python3 is not there";
  testing::PythonTool decoder(reference / "tools" / "d9dump.py");
  for (const auto& entry : fs::directory_iterator(reference / "data" / "dial9" / "vectors")) {
    const testing::Ran ran = decoder.run({entry.path().string()});
    ASSERT_TRUE(ran.status == 0 || ran.status == 3) << entry.path();
    std::vector<std::string> theirs = lines_of(ran.out);
    std::vector<std::string> ours =
        lines_of(testing::json_lines(testing::file_bytes(entry.path())));
    ASSERT_EQ(ours.size(), theirs.size()) << entry.path();
    const json their_end = json::parse(theirs.back(), nullptr, false);
    const json our_end = json::parse(ours.back(), nullptr, false);
    EXPECT_EQ(our_end["k"], their_end["k"]) << entry.path();
    EXPECT_EQ(our_end.value("pos", 0), their_end.value("pos", 0)) << entry.path();
    theirs.pop_back();
    ours.pop_back();
    EXPECT_EQ(ours, theirs) << entry.path();
  }
}

}  // namespace
}  // namespace collect::dial9
