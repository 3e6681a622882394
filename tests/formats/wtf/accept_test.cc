// The 84 variants of the reference pack: what the published viewer refuses is an error here, what
// it accepts is read with the same zones and events.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "formats/wtf/check.h"
#include "tests/formats/wtf/reference_files.h"

namespace collect::wtf {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

TEST(Variants, AreTakenAsThePublishedViewerTakesThem) {
  const fs::path reference = testing::reference_folder();
  if (reference.empty()) GTEST_SKIP() << "COLLECT_REFERENCE names no folder";
  if (!testing::has_python()) GTEST_SKIP() << "python3 is not there";
  const testing::Folder folder("variants");
  const auto made = testing::run("python3 '" + (reference / "tools" / "wtf_accept.py").string() +
                                 "' '" + folder.path().string() + "'");
  ASSERT_EQ(made.status, 0) << made.out;
  std::ifstream in(reference / "data" / "wtf" / "accept.json");
  const json table = json::parse(in, nullptr, false);
  ASSERT_FALSE(table.is_discarded());
  ASSERT_GE(table.size(), 84u);
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

}  // namespace
}  // namespace collect::wtf
