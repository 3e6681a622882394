// Names outside the machine. Expected numbers are those of `printf %s TEXT | sha256sum`.
#include "daemon/warehouse/part_identity.h"

#include <gtest/gtest.h>

#include "daemon/warehouse/row_batch.h"

namespace collect::warehouse {
namespace {

constexpr char kDirectory[] = "session_20260131_235959/pid_42";

storage::SessionIdentity identity() {
  storage::SessionIdentity made;
  made.process_id[0] = 0xab;
  made.recording = 3;
  made.collector.id[15] = 0x01;
  made.collector.epoch = 17;
  return made;
}

TEST(PartIdentityTest, IsThatOfItsCommit) {
  const auto part = identify_part(identity(), kDirectory, 5);
  ASSERT_TRUE(part.ok()) << to_string(part.error());
  EXPECT_EQ(part->session, "ab000000000000000000000000000000-3");
  EXPECT_EQ(part->part, "00000000000000000000000000000001-17/session_20260131_235959/pid_42");
  upload::Commit commit;
  commit.process_id = "ab000000000000000000000000000000";
  commit.recording = 3;
  commit.part = {"00000000000000000000000000000001", "17"};
  commit.session = kDirectory;
  EXPECT_EQ(identify_committed(commit, 5), *part);
  EXPECT_NE(identify_committed(commit, 6).load, part->load) << "another manifest, other rows";
}

TEST(PartIdentityTest, RefusesAnAmbiguousPart) {
  EXPECT_EQ(identify_part({}, kDirectory, 5).code(), Code::kUnsupported);
  for (const char* made :
       {"session_20260131_235959_snap1/pid_42", "session_20260131_235959_atf1/pid_42"}) {
    EXPECT_EQ(identify_part(identity(), made, 5).code(), Code::kUnsupported) << made;
  }
}

TEST(PartIdentityTest, MergedOneDoesNotDependOnTheOrder) {
  const PartIdentity one{"s", "a", 1};
  const PartIdentity other{"s", "b", 2};
  EXPECT_EQ(identify_merged({one, other}), identify_merged({other, one}));
  EXPECT_NE(identify_merged({one}).load, identify_merged({one, other}).load);
}

TEST(PartIdentityTest, FunctionsAreNumberedByTheirBuild) {
  storage::ModuleInfo module;
  module.build_id = {0xca, 0xfe};
  EXPECT_EQ(build_of(&module, 0, "s-1"), "cafe");
  EXPECT_EQ(build_of(nullptr, 7, "s-1"), "s-1/7");
  module.build_id.clear();
  EXPECT_EQ(build_of(&module, 2, "s-1"), "s-1/2");
  // SHA-256("abc") begins ba7816bf 8f01cfea (FIPS 180-2).
  EXPECT_EQ(first_function_of("abc"), 0xeacf018fbf1678baull);
}

// ClickHouse's documentation of RowBinary: little-endian numbers, LEB128 before texts and arrays.
TEST(RowBatchTest, IsRowBinary) {
  RowBatch rows;
  rows.number(uint16_t{0x0102});
  rows.text("ab");
  rows.length(2);
  rows.number(uint8_t{1});
  rows.number(uint8_t{2});
  rows.end_row();
  EXPECT_EQ(std::vector<uint8_t>(rows.bytes().begin(), rows.bytes().end()),
            (std::vector<uint8_t>{0x02, 0x01, 2, 'a', 'b', 2, 1, 2}));
  rows.clear();
  rows.text(std::string(300, 'x'));
  EXPECT_EQ(rows.bytes()[0], 0xac);
  EXPECT_EQ(rows.bytes()[1], 0x02);
  EXPECT_EQ(rows.bytes().size(), 302u);
  rows.clear();
  rows.row(uint64_t{1}, uint8_t{9});
  EXPECT_EQ(rows.rows(), 1u);
  EXPECT_EQ(rows.bytes().size(), 9u);
}

}  // namespace
}  // namespace collect::warehouse
