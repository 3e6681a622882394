#include "formats/wtf/transcode.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "formats/wtf/check.h"
#include "tests/formats/wtf/built_file.h"
#include "tests/formats/wtf/reference_files.h"

namespace collect::wtf {
namespace {

namespace fs = std::filesystem;

std::vector<uint8_t> copy_of(const std::vector<uint8_t>& bytes, Findings& findings) {
  auto reader = Reader::open(bytes, findings);
  EXPECT_TRUE(reader.ok());
  VectorSink sink;
  Writer writer(sink, {.pair_scopes = false});
  const Status status = transcode(**reader, writer, findings);
  EXPECT_TRUE(status.ok()) << status.error().message;
  return sink.bytes();
}

TEST(Transcode, KeepsEveryEvent) {
  for (uint32_t seed = 1; seed < 10; ++seed) {
    const auto made = testing::random_file(seed, 500, 3000);
    Findings findings;
    const auto copy = copy_of(made.bytes, findings);
    EXPECT_EQ(testing::lines_of(copy, findings), made.lines);
    EXPECT_TRUE(findings.list().empty());
  }
}

// The legacy sample and the same events in format 10, which another program converted.
TEST(Transcode, TheLegacySampleBecomesTheOther) {
  const fs::path reference = testing::reference_folder();
  if (reference.empty()) GTEST_SKIP() << "COLLECT_REFERENCE names no folder";
  const auto legacy =
      testing::file_bytes(reference / "data" / "wtf" / "blk-client.legacy.wtf-trace");
  const auto other = testing::file_bytes(reference / "data" / "wtf" / "blk-client.v10.wtf-trace");
  Findings findings;
  const auto copy = copy_of(legacy, findings);
  const auto lines = testing::lines_of(copy, findings);
  const auto expected = testing::lines_of(other, findings);
  ASSERT_EQ(lines.size(), 458232u);
  ASSERT_EQ(expected.size(), lines.size());
  // The other program wrote `any` values with spaces of its own.
  const auto without_spaces = [](std::string text) {
    text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
    return text;
  };
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i] != expected[i]) {
      ASSERT_EQ(without_spaces(lines[i]), without_spaces(expected[i])) << i;
    }
  }
  EXPECT_EQ(findings.errors() + findings.warnings(), 0u);
  const FileReport report = check_file(copy);
  EXPECT_TRUE(report.viewer_loads);
  EXPECT_EQ(report.header->timebase_ms, 1367885827385.0);
  EXPECT_EQ(report.zones[0].frames, 888u);
}

TEST(Transcode, ResourcesStayWithTheirEvents) {
  Findings findings;
  const auto copy = copy_of(testing::build_file(200), findings);
  const FileReport report = check_file(copy);
  EXPECT_EQ(report.resources, 2u);
  EXPECT_EQ(report.grade, Grade::kOk);
}

}  // namespace
}  // namespace collect::wtf
