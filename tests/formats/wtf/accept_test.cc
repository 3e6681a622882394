// Variants of a file, right and wrong: what the published viewer refuses is an error here, what it
// accepts is read with the same zones and events.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "formats/wtf/check.h"
#include "tests/formats/wtf/reference_files.h"

namespace collect::wtf {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

// `maker`: the command that writes them into a folder.
void compare_variants(const std::string& maker, const fs::path& outcomes, size_t count) {
  const testing::Folder folder("variants");
  const auto made = testing::run(maker + " '" + folder.path().string() + "'");
  ASSERT_EQ(made.status, 0) << made.out;
  std::ifstream in(outcomes);
  const json table = json::parse(in, nullptr, false);
  ASSERT_FALSE(table.is_discarded());
  ASSERT_GE(table.size(), count);
  for (const auto& [name, expected] : table.items()) {
    SCOPED_TRACE(name + ": " + expected["what"].get<std::string>());
    fs::path path = folder.path() / (name + ".wtf-trace");
    if (!fs::exists(path)) path = folder.path() / (name + ".wtf-json");
    const std::vector<uint8_t> bytes = testing::file_bytes(path);
    const FileReport report = check_file(bytes);
    EXPECT_EQ(report.viewer_loads, expected["result"] == "loaded");
    if (expected["result"] == "loaded") {
      EXPECT_EQ(report.zones.size(), expected["zones"]);
      EXPECT_EQ(report.events, expected["events"]);
    } else {
      EXPECT_GE(report.findings.errors(), 1u);
      EXPECT_NE(report.grade, Grade::kOk);
    }
  }
}

TEST(Variants, AreTakenAsThePublishedViewerTakesThem) {
  if (!testing::has_python()) GTEST_SKIP() << "python3 is not there";
  const fs::path golden = testing::golden_folder();
  compare_variants("python3 -B '" + (golden / "make_wtf.py").string() + "' --variants",
                   golden / "data/wtf/accept.json", 70);
}

TEST(Variants, AreAcceptedLikeThePublishedViewer) {
  const fs::path reference = testing::reference_folder();
  if (reference.empty()) GTEST_SKIP() << testing::kNoPack;
  if (!testing::has_python()) GTEST_SKIP() << "python3 is not there";
  compare_variants("python3 '" + (reference / "tools" / "wtf_accept.py").string() + "'",
                   reference / "data" / "wtf" / "accept.json", 84);
}

}  // namespace
}  // namespace collect::wtf
