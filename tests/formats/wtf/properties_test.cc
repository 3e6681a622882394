// read(write(x)) is x, for random content.
#include <gtest/gtest.h>

#include "formats/wtf/check.h"
#include "formats/wtf/json/json.h"
#include "tests/formats/wtf/built_file.h"

namespace collect::wtf {
namespace {

TEST(Properties, ReadsTheEventsItWrites) {
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    const size_t chunk_bytes = seed % 3 == 0 ? 64 : seed % 3 == 1 ? 2000 : size_t{1} << 20;
    const auto made = testing::random_file(seed, 400, chunk_bytes);
    Findings findings;
    EXPECT_EQ(testing::lines_of(made.bytes, findings), made.lines);
    EXPECT_TRUE(findings.list().empty()) << findings.list()[0].sentence;
    const FileReport report = check_file(made.bytes);
    EXPECT_EQ(report.grade, Grade::kOk);
    EXPECT_TRUE(report.viewer_loads);
    EXPECT_EQ(report.events, made.lines.size());
    if (chunk_bytes < 3000) {
      EXPECT_GT(report.chunks, 3u);
    }
    for (const ZoneReport& zone : report.zones) {
      EXPECT_EQ(zone.backward_steps + zone.open_scopes + zone.unmatched_leaves, 0u);
    }
  }
}

// Binary to JSON to binary, byte by byte, in every mode.
TEST(Properties, JsonKeepsEveryByte) {
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    const auto made = testing::random_file(seed, 300, seed % 2 == 0 ? 500 : size_t{1} << 20);
    for (const JsonMode mode : {JsonMode::kComplete, JsonMode::kPartial}) {
      for (const JsonEvents events : {JsonEvents::kEvents, JsonEvents::kBase64}) {
        Findings findings;
        VectorSink json, binary;
        const auto there = binary_to_json(made.bytes, {mode, events}, json, findings);
        ASSERT_TRUE(there.ok()) << there.error().message;
        const auto back = json_to_binary(json.bytes(), binary, findings);
        ASSERT_TRUE(back.ok()) << back.error().message;
        ASSERT_TRUE(findings.list().empty()) << findings.list()[0].sentence;
        ASSERT_EQ(binary.bytes(), made.bytes) << seed;
        EXPECT_EQ(there->events, back->events);
        EXPECT_EQ(there->chunks, back->chunks);
      }
    }
  }
}

}  // namespace
}  // namespace collect::wtf
