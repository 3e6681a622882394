// Every sample and every vector gives what is written beside it: counts and times, the digest of
// the whole dump, and for vectors the outcome of a strict decoder and the lines of what is
// before the end. Those of the reference pack are the lines that the published decoder shows.
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
  const auto folders = testing::sample_folders("data/dial9");
  const auto samples = testing::files_with(folders, ".expected.json");
  EXPECT_EQ(samples.size(), folders.size() == 1 ? 2u : 2u + 5u);
  for (const fs::path& path : samples) {
    const json expected = json::parse(file_text(path), nullptr, false);
    ASSERT_FALSE(expected.is_discarded()) << path;
    const fs::path sample = path.parent_path() / expected["sample"].get<std::string>();
    const std::vector<uint8_t> bytes = testing::unpacked_bytes(sample);
    const Report report = check_stream(bytes);
    EXPECT_EQ(report.grade, Grade::kOk) << path;
    EXPECT_EQ(report.findings.errors(), 0u) << path;
    const json summary = summary_of(report);
    for (const auto& [key, value] : summary.items()) EXPECT_EQ(value, expected[key]) << path << key;
    EXPECT_EQ(json(sha256_of(testing::json_lines(bytes))), expected["jsonl_sha256"]) << path;
    EXPECT_TRUE(looks_like_dial9(Bytes(bytes).first(16)));
  }
}

void expect_the_same_in_pieces(const fs::path& path) {
  const std::vector<uint8_t> bytes = testing::unpacked_bytes(path);
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

// Pushed in pieces of odd sizes, a file shows the same.
TEST(Samples, InPiecesShowTheSameLines) {
  expect_the_same_in_pieces(testing::golden_folder() / "data/dial9/service.bin");
  const fs::path reference = reference_folder();
  if (!reference.empty()) {
    expect_the_same_in_pieces(reference / "data/dial9/demo-2026-03-18-94300d9.bin");
  }
}

TEST(Samples, ClockSyncAndRange) {
  const fs::path path = testing::golden_folder() / "data/dial9/service.bin";
  const Report report = check_stream(testing::file_bytes(path));
  const json expected = json::parse(
      file_text(path.parent_path() / "service.expected.json"))["clock_sync_and_range_ns"];
  ASSERT_TRUE(report.times.clock_sync.has_value());
  EXPECT_EQ(json({report.times.clock_sync->time_ns, report.times.clock_sync->realtime_ns,
                  *report.times.range_begin_ns, *report.times.range_end_ns}),
            expected);
}

TEST(Samples, ClockSyncAndRangeOfTheNewest) {
  const fs::path reference = reference_folder();
  if (reference.empty()) GTEST_SKIP() << testing::kNoPack;
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

// What a strict decoder makes of a vector.
const json& strict_outcome(const json& vector) {
  return vector.contains("strict") ? vector["strict"] : vector["d9dump"];
}

void compare_golden(const std::string& name, const fs::path& path, const json& vector,
                    const std::vector<std::string>& ours) {
  const std::vector<std::string> golden = lines_of(file_text(path));
  const bool is_error = strict_outcome(vector)["result"] == "error";
  if (vector.contains("strict") ? !is_error : vector["d9dump_equals_golden"] == true) {
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

void compare_vectors(const fs::path& folder, size_t count, size_t with_golden) {
  SCOPED_TRACE(folder);
  const json vectors = json::parse(file_text(folder / "vectors.json"), nullptr, false);
  ASSERT_FALSE(vectors.is_discarded());
  size_t golden = 0;
  for (const auto& [name, vector] : vectors.items()) {
    const std::vector<uint8_t> bytes = testing::file_bytes(folder / "vectors" / (name + ".bin"));
    ASSERT_EQ(bytes.size(), vector["bytes"]) << name;
    const Report report = check_stream(bytes);
    const json& strict = strict_outcome(vector);
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
  EXPECT_GE(vectors.size(), count);
  EXPECT_GE(golden, with_golden);
}

TEST(Vectors, GiveTheStrictOutcomeAndTheGoldenLines) {
  compare_vectors(testing::golden_folder() / "data/dial9", 60, 60);
  const fs::path reference = reference_folder();
  if (!reference.empty()) compare_vectors(reference / "data" / "dial9", 54, 51);
}

// Hundreds of thousands of frames without an event, schemas as large as they get, the deepest
// lists: made here, since they take megabytes.
TEST(Vectors, LargeOnesGiveTheStrictOutcome) {
  if (!testing::has_python()) GTEST_SKIP() << "python3 is not there";
  const fs::path folder =
      fs::path(::testing::TempDir()) / ("dial9_large_" + std::to_string(getpid()));
  testing::PythonTool generator(testing::golden_folder() / "make_dial9.py");
  ASSERT_EQ(generator.run({"--large", folder.string()}).status, 0);
  compare_vectors(folder, 4, 4);
  fs::remove_all(folder);
}

void compare_lines(testing::PythonTool& decoder, const fs::path& path) {
  SCOPED_TRACE(path);
  const testing::Ran ran = decoder.run({path.string()});
  ASSERT_TRUE(ran.status == 0 || ran.status == 3);
  std::vector<std::string> theirs = lines_of(ran.out);
  std::vector<std::string> ours = lines_of(testing::json_lines(testing::file_bytes(path)));
  ASSERT_EQ(ours.size(), theirs.size());
  const json their_end = json::parse(theirs.back(), nullptr, false);
  const json our_end = json::parse(ours.back(), nullptr, false);
  EXPECT_EQ(our_end["k"], their_end["k"]);
  EXPECT_EQ(our_end.value("pos", 0), their_end.value("pos", 0));
  theirs.pop_back();
  ours.pop_back();
  EXPECT_EQ(ours, theirs);
}

// The lines of independent decoders, for all vectors; only their words for an error are their own.
TEST(Vectors, ShowTheLinesOfTheIndependentDecoders) {
  if (!testing::has_python()) GTEST_SKIP() << "python3 is not there";
  for (const fs::path& program : testing::independent_programs("read_dial9.py", "d9dump.py")) {
    testing::PythonTool decoder(program);
    for (const fs::path& folder : testing::sample_folders("data/dial9/vectors")) {
      for (const fs::path& path : testing::files_with(folder, ".bin")) compare_lines(decoder, path);
    }
  }
}

}  // namespace
}  // namespace collect::dial9
