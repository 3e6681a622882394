// Every RTC sample against the outcome that its expected.json states, field by field.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "formats/rtc/check.h"
#include "formats/rtc/marker.h"
#include "tests/formats/rtc/reference_files.h"

namespace collect::rtc {
namespace {

using nlohmann::json;
using testing::file_bytes;
namespace fs = std::filesystem;

// Rules that the independent checkers know too: their "problems".
bool is_shared(Rule rule) {
  static const std::set<Rule> shared = {Rule::kFrame,       Rule::kUnknownStream,
                                        Rule::kMetaMissing, Rule::kMarkerPayload,
                                        Rule::kMarkerGrid,  Rule::kIndexSyntax,
                                        Rule::kIndexOrder,  Rule::kIndexTarget,
                                        Rule::kMeta,        Rule::kCrc};
  return shared.contains(rule);
}

json time_json(const std::optional<int64_t>& time) {
  return time ? json(*time) : json();
}

template <class T>
json optional_json(const std::optional<T>& value) {
  return value ? json(*value) : json();
}

json streams_json(const Summary& summary) {
  json streams = json::object();
  for (const StreamSummary& stream : summary.streams) {
    if (stream.objects == 0) continue;
    streams[stream.info.label()] = {{"id", stream.info.id},
                                    {"objects", stream.objects},
                                    {"bytes", stream.bytes},
                                    {"first_time_ns", time_json(stream.first_time_ns)},
                                    {"last_time_ns", time_json(stream.last_time_ns)},
                                    {"without_time", stream.without_time}};
  }
  return streams;
}

// The same document as an independent checker prints.
json summary_json(const Summary& summary) {
  json crc = json::object();
  json positions = json::array();
  json counts = json::array();
  for (const UnitInfo& unit : summary.units) {
    const std::string name(to_text(unit.crc));
    crc[name] = crc.value(name, 0) + 1;
    positions.push_back(unit.offset);
    counts.push_back(optional_json(unit.count));
  }
  json incomplete = json::object();
  for (const StreamSummary& stream : summary.streams) {
    if (stream.incomplete != 0) incomplete[stream.info.label()] = stream.incomplete;
  }
  uint64_t problems = 0;
  json first_problems = json::array();
  for (const Finding& finding : summary.findings.list()) {
    if (!is_shared(finding.rule)) continue;
    ++problems;
    std::ostringstream at;
    at << "0x" << std::hex << finding.offset;
    if (first_problems.size() < 20) first_problems.push_back(at.str());
  }
  return {{"format", "rtc"},
          {"bytes", summary.bytes},
          {"head_skipped", summary.head_bytes},
          {"tail_bytes", summary.tail_bytes},
          {"special_frames", to_text(summary.special)},
          {"endian", to_text(summary.endian)},
          {"units", summary.units.size()},
          {"Unit", optional_json(summary.units.front().unit_bytes)},
          {"unit", optional_json(summary.units.front().minor_bytes)},
          {"unit_positions", positions},
          {"unit_counts", counts},
          {"crc", crc},
          {"frames", summary.frames},
          {"objects", summary.objects},
          {"streams", streams_json(summary)},
          {"first_time_ns", time_json(summary.first_time_ns)},
          {"last_time_ns", time_json(summary.last_time_ns)},
          {"incomplete", incomplete},
          {"resyncs", summary.resyncs},
          {"problems", problems},
          {"first_problems", first_problems}};
}

// Of "0x1079: Marker off the grid", the place.
json places_of(const json& problems) {
  json places = json::array();
  for (const json& problem : problems) {
    const auto text = problem.get<std::string>();
    places.push_back(text.substr(0, text.find(':')));
  }
  return places;
}

void compare_sample(const fs::path& expected_path) {
  json expected = json::parse(file_bytes(expected_path));
  const std::string sample = expected["sample"].get<std::string>();
  SCOPED_TRACE(sample);
  const auto file = file_bytes(expected_path.parent_path() / sample);
  EXPECT_TRUE(looks_like_rtc(file));
  const auto summary = check_file(file);
  ASSERT_TRUE(summary.ok());
  const json found = summary_json(*summary);
  expected["first_problems"] = places_of(expected["first_problems"]);
  for (const auto& [key, value] : expected.items()) {
    if (key == "sample" || key == "published_reader" || key == "sizes_of_blobs") continue;
    EXPECT_EQ(found[key], value) << key;
  }
  uint64_t frames_read = 0;
  uint64_t payload = 0;
  auto reader = Reader::open(file);
  ASSERT_TRUE(reader.ok());
  for (Frame frame; reader->next_frame(frame); ++frames_read) payload += frame.payload.size();
  EXPECT_EQ(frames_read, expected["frames"]);
  EXPECT_LT(payload, file.size());
}

TEST(RtcSamples, GiveTheirExpectedResults) {
  for (const fs::path& folder : testing::sample_folders("data/rtc")) {
    const auto samples = testing::files_with(folder, ".expected.json");
    EXPECT_GE(samples.size(), 13u) << folder;
    for (const fs::path& sample : samples) compare_sample(sample);
  }
}

fs::path golden_path(const std::string& name) {
  return testing::golden_folder() / "data/rtc" / name;
}
json golden_outcome(const std::string& sample) {
  return json::parse(file_bytes(golden_path(sample + ".expected.json")));
}
fs::path sample_path(const char* name) {
  const fs::path reference = testing::reference_folder();
  return reference.empty() ? fs::path() : reference / "data" / "rtc" / name;
}

// The generators' values, of both folders: sample i is i, at 1609772400 s + (i + 1) * 100 us.
void expect_generated(Bytes file, uint64_t first, uint64_t count) {
  auto reader = Reader::open(file);
  ASSERT_TRUE(reader.ok());
  Object object;
  uint64_t next = first;
  while (reader->next(object)) {
    if (object.stream->name != "sample") continue;
    const auto value = reader->value(object);
    ASSERT_TRUE(value.ok());
    ASSERT_EQ(std::get<uint64_t>(value.value().raw), next);
    EXPECT_DOUBLE_EQ(*value.value().number, static_cast<double>(next) * 0.5 - 10);
    if (object.time_ns) {
      ASSERT_EQ(*object.time_ns, 1609772400000000000 + static_cast<int64_t>(next + 1) * 100000);
    }
    ++next;
  }
  EXPECT_EQ(next - first, count);
}

TEST(RtcSamples, HoldTheGeneratedValuesAndTimes) {
  const auto samples_of = [](const std::string& name) {
    return golden_outcome(name)["streams"]["sample"]["objects"].get<uint64_t>();
  };
  for (const char* name : {"mk_ieee_fixed", "mk_ieee_fixed_lengths", "mk_ieee_prefixed",
                           "mk_writercrc_fixed", "mk_big_endian", "mk_bigmeta", "mk_equal_units",
                           "mk_killed", "mk_ieee_fixed.corrupt", "mk_ieee_fixed.tailcut"}) {
    SCOPED_TRACE(name);
    EXPECT_GE(samples_of(name), 50u);
    expect_generated(file_bytes(golden_path(std::string(name) + ".rtc")), 0, samples_of(name));
  }
  const uint64_t all = samples_of("mk_ieee_fixed");
  const uint64_t left = samples_of("mk_ieee_fixed.headcut");
  EXPECT_LT(left, all);
  expect_generated(file_bytes(golden_path("mk_ieee_fixed.headcut.rtc")), all - left, left);
}

TEST(RtcSamples, PackHoldsTheGeneratedValuesAndTimes) {
  if (testing::reference_folder().empty()) GTEST_SKIP() << testing::kNoPack;
  expect_generated(file_bytes(sample_path("mk_ieee_fixed.rtc")), 0, 600);
  expect_generated(file_bytes(sample_path("mk_ieee_prefixed.rtc")), 0, 600);
  expect_generated(file_bytes(sample_path("mk_ieee_fixed_lengths.rtc")), 0, 600);
  expect_generated(file_bytes(sample_path("up_16k_late.rtc")), 0, 2000);
  expect_generated(file_bytes(sample_path("up_small_var.head3000cut.rtc")), 138, 462);
}

// Of the streams that were there in front of the cut: "late" begins behind it.
void expect_first_is_marked(Bytes file, const std::vector<uint64_t>& blob_bytes) {
  auto reader = Reader::open(file);
  ASSERT_TRUE(reader.ok());
  std::map<std::string, std::vector<bool>> marks;
  std::vector<uint64_t> blobs;
  for (Object object; reader->next(object);) {
    marks[object.stream->name].push_back(object.possibly_incomplete);
    if (object.stream->name == "blob") blobs.push_back(object.size);
  }
  EXPECT_EQ(blobs, blob_bytes);
  for (const auto& [name, seen] : marks) {
    const bool was_there = name != "late";
    for (size_t i = 0; i < seen.size(); ++i) {
      EXPECT_EQ(seen[i], i == 0 && was_there) << name << " " << i;
    }
  }
}

TEST(RtcSamples, FirstObjectAfterTheCutIsMarked) {
  const std::string name = "mk_ieee_fixed.headcut";
  expect_first_is_marked(file_bytes(golden_path(name + ".rtc")),
                         golden_outcome(name)["sizes_of_blobs"]);
}

TEST(RtcSamples, MarksTheFirstObjectAfterThePacksCut) {
  if (testing::reference_folder().empty()) GTEST_SKIP() << testing::kNoPack;
  expect_first_is_marked(file_bytes(sample_path("up_small_var.head3000cut.rtc")),
                         {4838, 5000, 5000, 5000, 5000});
}

// Published writers tear frames of a fixed length at the grid. Put together, all are there: the
// same streams as in the file of variable length.
TEST(RtcSamples, TornFramesCanBeRepaired) {
  if (testing::reference_folder().empty()) GTEST_SKIP() << testing::kNoPack;
  const auto torn = file_bytes(sample_path("up_small_fixed.rtc"));
  const auto whole = check_file(file_bytes(sample_path("up_small_var.rtc")));
  ReaderOptions options;
  options.repair_torn_frames = true;
  const auto repaired = check_file(torn, options);
  ASSERT_TRUE(whole.ok() && repaired.ok());
  EXPECT_EQ(streams_json(*repaired), streams_json(*whole));
  ASSERT_EQ(repaired->findings.list().size(), 1u);
  EXPECT_EQ(repaired->findings.list()[0].rule, Rule::kTornFrame);
  EXPECT_EQ(repaired->findings.list()[0].offset, 0x73FFu);
}

}  // namespace
}  // namespace collect::rtc
