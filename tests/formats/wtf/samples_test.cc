// Every sample gives the outcome that is beside it, field by field: what the published viewer's
// library counts.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "formats/wtf/check.h"
#include "tests/formats/wtf/reference_files.h"

namespace collect::wtf {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

json text_or_null(const std::optional<std::string>& text) {
  return text ? json(*text) : json(nullptr);
}

// 1.0 and 1 are the same number; microseconds become milliseconds as the viewer shows them.
json number(double value) {
  if (value == static_cast<double>(static_cast<int64_t>(value))) return static_cast<int64_t>(value);
  return value;
}
json milliseconds(const std::optional<uint32_t>& us) {
  return us ? number(*us / 1000.0) : json(nullptr);
}

json summary_of(const FileReport& report, const std::string& name) {
  json out = {{"sample", name},
              {"format", "wtf-trace"},
              {"format_version", report.format_version},
              {"bytes", report.bytes},
              {"ok", report.grade == Grade::kOk},
              {"timebase", number(report.header->timebase_ms)},
              {"first_time_ms", milliseconds(report.first_us)},
              {"last_time_ms", milliseconds(report.last_us)},
              {"event_types", report.event_types},
              {"events", report.events},
              {"zones", json::array()}};
  if (report.kind == FileKind::kBinary) out["chunks"] = report.chunks;
  for (const ZoneReport& zone : report.zones) {
    json frequent = json::array();
    for (const auto& [text, count] : zone.most_frequent) frequent.push_back({text, count});
    out["zones"].push_back({{"name", text_or_null(zone.name)},
                            {"type", text_or_null(zone.type)},
                            {"location", text_or_null(zone.location)},
                            {"events", zone.events},
                            {"scopes", zone.scopes},
                            {"max_scope_depth", zone.max_scope_depth},
                            {"first_time_ms", milliseconds(zone.first_us)},
                            {"last_time_ms", milliseconds(zone.last_us)},
                            {"distinct_names", zone.distinct_names},
                            {"most_frequent", frequent},
                            {"frames", zone.frames},
                            {"marks", zone.marks},
                            {"time_ranges", zone.time_ranges}});
  }
  return out;
}

TEST(Samples, GiveTheirExpectedResult) {
  const auto folders = testing::sample_folders("data/wtf");
  const auto samples = testing::files_with(folders, ".wtf-trace");
  EXPECT_GE(samples.size(), folders.size() == 1 ? 3u : 3u + 7u);
  for (const fs::path& path : samples) {
    SCOPED_TRACE(path);
    const std::vector<uint8_t> bytes = testing::file_bytes(path);
    fs::path expected_path = path;
    expected_path.replace_extension(".expected.json");
    std::ifstream in(expected_path);
    const json expected = json::parse(in, nullptr, false);
    ASSERT_FALSE(expected.is_discarded());
    const FileReport report = check_file(bytes);
    EXPECT_EQ(summary_of(report, path.filename().string()), expected);
    EXPECT_TRUE(report.viewer_loads);
    EXPECT_EQ(report.findings.errors() + report.findings.warnings(), 0u);
  }
}

}  // namespace
}  // namespace collect::wtf
