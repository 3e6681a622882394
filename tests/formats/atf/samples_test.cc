// Every ATF sample against the outcome that its expected.json states.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "formats/atf/check.h"
#include "formats/atf/session_reader.h"
#include "tests/formats/atf/reference_files.h"

namespace collect::atf {
namespace {

using nlohmann::json;
using testing::file_bytes;
namespace fs = std::filesystem;

// Rules that we check and the independent checkers do not: they are not in their counts.
bool is_extra(Check check) {
  static const std::set<Check> extra = {
      Check::kTimeRange,  Check::kDetailWalk, Check::kPayload, Check::kPayloadFunction,
      Check::kRecordType, Check::kReserved,   Check::kPlatform};
  return extra.contains(check);
}

uint64_t count_of(const ThreadReport& report, Severity severity) {
  return static_cast<uint64_t>(std::count_if(
      report.findings.list().begin(), report.findings.list().end(), [&](const Finding& finding) {
        return finding.severity == severity && !is_extra(finding.check) &&
               !(finding.check == Check::kThreadId && finding.lane == Lane::kDetail);
      }));
}

std::string sentences(const ThreadReport& report) {
  std::string all;
  for (const Finding& finding : report.findings.list()) {
    all += std::string(check_name(finding.check)) + " " + finding.sentence + "\n";
  }
  return all;
}

std::string text_in(const json& object, const char* key) {
  return object[key].get<std::string>();
}

std::optional<uint64_t> time_in(const json& object, const char* key) {
  if (!object.contains(key) || object[key].is_null()) return std::nullopt;
  return object[key].get<uint64_t>();
}

std::string algorithm(Version version, ChecksumState state) {
  if (state != ChecksumState::kGood && state != ChecksumState::kOtherAlgorithm) return "none";
  const bool own = state == ChecksumState::kGood;
  return (version == Version::kV2) == own ? "crc32c" : "crc32-ieee";
}

void compare_detail(const ThreadReport& report, const json& expected) {
  const DetailReport& detail = report.detail;
  ASSERT_EQ(detail.present, expected["present"].get<bool>());
  if (!detail.present) return;
  EXPECT_EQ(detail.rejected ? "rejected" : to_text(detail.state), text_in(expected, "state"));
  if (detail.rejected) return;
  EXPECT_EQ(detail.records, expected["events"]);
  EXPECT_EQ(detail.bytes, expected["bytes"]);
  EXPECT_EQ(detail.trailing_bytes, expected["trailing_bytes"]);
  EXPECT_EQ(to_text(detail.checksum), text_in(expected, "crc"));
  json types = json::object();
  for (const auto& [type, count] : detail.types) types[std::to_string(type)] = count;
  EXPECT_EQ(types, expected["types"]);
}

void compare_thread(const ThreadReport& report, const json& expected) {
  SCOPED_TRACE(expected["dir"].get<std::string>() + "\n" + sentences(report));
  ASSERT_EQ(report.rejected, expected["state"] == "rejected");
  if (report.rejected) return;
  EXPECT_EQ(to_text(report.state), text_in(expected, "state"));
  EXPECT_EQ(static_cast<int>(report.header->version), expected["version"]);
  EXPECT_EQ(report.header->thread_id, expected["thread_id"]);
  EXPECT_EQ(static_cast<int>(report.header->arch), expected["arch"]);
  EXPECT_EQ(static_cast<int>(report.header->os), expected["os"]);
  EXPECT_EQ(static_cast<int>(report.header->clock), expected["clock_type"]);
  EXPECT_EQ(report.header->flags & 1u, expected["has_detail_flag"]);
  EXPECT_EQ(to_text(report.checksum), text_in(expected, "crc"));
  const json& named = expected.contains("crc_algorithm") ? expected["crc_algorithm"] : json();
  EXPECT_EQ(algorithm(report.header->version, report.checksum),
            named.is_null() ? std::string("none") : named.get<std::string>());
  EXPECT_EQ(report.events, expected["events"]);
  EXPECT_EQ(report.calls, expected["calls"]);
  EXPECT_EQ(report.returns, expected["returns"]);
  EXPECT_EQ(report.exceptions, expected["exceptions"]);
  EXPECT_EQ(report.first_ns, time_in(expected, "first_ts"));
  EXPECT_EQ(report.last_ns, time_in(expected, "last_ts"));
  EXPECT_EQ(report.min_ns, time_in(expected, "min_ts"));
  EXPECT_EQ(report.max_ns, time_in(expected, "max_ts"));
  EXPECT_EQ(report.backward_steps, expected["backward_steps"]);
  if (expected.contains("max_depth")) {
    EXPECT_EQ(report.max_depth, expected["max_depth"]);
  }
  if (expected.contains("trailing_bytes")) {
    EXPECT_EQ(report.trailing_bytes, expected["trailing_bytes"]);
  }
  EXPECT_EQ(report.functions, expected["functions"]);
  EXPECT_EQ(report.links, expected["links"]);
  EXPECT_EQ(count_of(report, Severity::kError), expected["errors"].size());
  EXPECT_EQ(count_of(report, Severity::kWarning), expected["warnings"].size());
  compare_detail(report, expected["detail"]);
}

void compare_sample(const fs::path& expected_path) {
  const json expected = json::parse(file_bytes(expected_path));
  const std::string name = expected_path.string();
  const fs::path session = name.substr(0, name.size() - std::string(".expected.json").size());
  SCOPED_TRACE(session.string());
  std::vector<ThreadReport> reports;
  std::vector<std::vector<uint8_t>> kept;
  kept.reserve(2 * expected["threads"].size());
  std::vector<ThreadFiles> files;
  for (const json& thread : expected["threads"]) {
    const std::string dir = thread["dir"];
    const auto n = static_cast<uint32_t>(std::stoul(dir.substr(dir.find('_') + 1)));
    kept.push_back(file_bytes(session / dir / "index.atf"));
    ThreadFiles one{n, kept.back(), {}};
    if (fs::exists(session / dir / "detail.atf")) {
      kept.push_back(file_bytes(session / dir / "detail.atf"));
      one.detail = kept.back();
    }
    reports.push_back(check_thread(n, one.index, one.detail));
    compare_thread(reports.back(), thread);
    files.push_back(one);
  }
  EXPECT_EQ(to_text(grade_of(reports)), text_in(expected, "result"));
  const SessionReader reader(files);
  EXPECT_EQ(reader.events(), expected["events"]);
  const auto range = reader.time_range();
  EXPECT_EQ(range ? std::optional(range->first_ns) : std::nullopt, time_in(expected, "first_ts"));
  EXPECT_EQ(range ? std::optional(range->last_ns) : std::nullopt, time_in(expected, "last_ts"));
  uint64_t merged = 0;
  MergedCursor cursor = reader.merged();
  for (MergedEvent event; cursor.next(event);) ++merged;
  EXPECT_EQ(merged, expected["events"]);
}

class Samples : public ::testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Atf, Samples, ::testing::Values("v1", "v2"),
                         [](const auto& sample) { return std::string(sample.param); });

TEST_P(Samples, GiveTheirExpectedOutcome) {
  for (const fs::path& folder : testing::sample_folders(fs::path("data") / "atf" / GetParam())) {
    const auto samples = testing::files_with(folder, ".expected.json");
    EXPECT_GE(samples.size(), 18u) << folder;
    for (const fs::path& sample : samples) compare_sample(sample);
  }
}

// They are from programs of others.
TEST(AtfSamples, PublishedSamplesGiveTheirExpectedOutcome) {
  const fs::path reference = testing::reference_folder();
  if (reference.empty()) GTEST_SKIP() << testing::kNoPack;
  const auto samples = testing::files_with(reference / "data" / "atf", ".expected.json");
  EXPECT_GE(samples.size(), 5u);
  for (const fs::path& sample : samples) compare_sample(sample);
}

}  // namespace
}  // namespace collect::atf
