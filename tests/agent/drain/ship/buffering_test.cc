// What the collector may change of a full ring and of the spool, and what it may not.
#include "agent/drain/ship/buffering.h"

#include "tests/agent/drain/drain_parts.h"
#include "tests/agent/temp_folder.h"

namespace collect::agent {
namespace {

constexpr auto kUnchanged = collect_wire_SetBuffering_WhenFull_UNCHANGED;
constexpr auto kDrop = collect_wire_SetBuffering_WhenFull_DROP;
constexpr auto kWait = collect_wire_SetBuffering_WhenFull_WAIT;
constexpr auto kOverwrite = collect_wire_SetBuffering_WhenFull_OVERWRITE;

class BufferingTest : public DrainPartsTest {
 protected:
  BufferingTest() { set_full_policy(FullPolicy::kDrop); }
  // Any number, as a collector may send it.
  std::string change_policy(uint32_t when_full, bool has_recording) {
    collect_wire_SetBuffering wanted = collect_wire_SetBuffering_init_zero;
    static_assert(sizeof wanted.when_full == sizeof when_full);
    std::memcpy(&wanted.when_full, &when_full, sizeof when_full);
    return text(parts_->buffering.change(wanted, has_recording));
  }
  std::string change_spool(uint32_t megabytes,
                           collect_wire_SetBuffering_WhenFull when_full = kUnchanged) {
    collect_wire_SetBuffering wanted = collect_wire_SetBuffering_init_zero;
    wanted.when_full = when_full;
    wanted.sets_spool = true;
    wanted.spool_mb = megabytes;
    return text(parts_->buffering.change(wanted, true));
  }
  void set_folder(const std::string& folder) {
    std::memcpy(settings().spool, folder.c_str(), folder.size() + 1);
    settings().spool_mb = 2;
  }
  static std::string text(const char* error) { return error != nullptr ? error : ""; }
  Spool& spool() { return parts_->shipper.streams().spool(); }

  TempFolder folder_;
};

constexpr uint64_t kMb = uint64_t{1} << 20;

TEST_F(BufferingTest, FullRingDropsOrWaitsAsIsWanted) {
  EXPECT_EQ(change_policy(kWait, true), "");
  EXPECT_EQ(full_policy(), FullPolicy::kWait);
  EXPECT_EQ(change_policy(kUnchanged, true), "");
  EXPECT_EQ(full_policy(), FullPolicy::kWait);
  EXPECT_EQ(change_policy(kDrop, true), "");
  EXPECT_EQ(full_policy(), FullPolicy::kDrop);
  EXPECT_EQ(change_policy(4, false), "this agent does not know what to do when the ring is full");
  EXPECT_EQ(full_policy(), FullPolicy::kDrop);
}

TEST_F(BufferingTest, OverwriteIsChosenAndLeftOnlyWithoutARecording) {
  const std::string refused = "overwrite can be chosen or left only while nothing is recorded";
  EXPECT_EQ(change_policy(kOverwrite, true), refused);
  EXPECT_EQ(full_policy(), FullPolicy::kDrop);
  EXPECT_EQ(change_policy(kOverwrite, false), "");
  EXPECT_EQ(full_policy(), FullPolicy::kOverwrite);
  EXPECT_EQ(change_policy(kOverwrite, true), "") << "it is no change";
  EXPECT_EQ(change_policy(kWait, true), refused);
  EXPECT_EQ(full_policy(), FullPolicy::kOverwrite);
  EXPECT_EQ(change_policy(kWait, false), "");
  EXPECT_EQ(full_policy(), FullPolicy::kWait);
}

TEST_F(BufferingTest, SpoolIsThatOfTheSettings) {
  parts_->buffering.open_spool();
  EXPECT_FALSE(spool().is_open()) << "they name no folder";
  set_folder(folder_.path().native());
  parts_->buffering.open_spool();
  EXPECT_TRUE(spool().is_open());
  EXPECT_EQ(spool().capacity(), 2 * kMb);
  EXPECT_EQ(spool().limit(), 2 * kMb);
}

TEST_F(BufferingTest, HasNoSpoolWithoutItsFolder) {
  set_folder(folder_.path().native() + "/absent");
  parts_->buffering.open_spool();
  EXPECT_FALSE(spool().is_open());
  EXPECT_NE(change_spool(1), "");
  EXPECT_FALSE(spool().is_open());
}

TEST_F(BufferingTest, SpoolShrinksAndGrows) {
  set_folder(folder_.path().native());
  parts_->buffering.open_spool();
  EXPECT_EQ(change_spool(1), "");
  EXPECT_EQ(spool().limit(), 1 * kMb);
  EXPECT_EQ(spool().capacity(), 2 * kMb) << "the file stays";
  EXPECT_EQ(change_spool(0), "");
  EXPECT_EQ(spool().limit(), 0u);
  EXPECT_EQ(change_spool(5), "");
  EXPECT_EQ(spool().limit(), 5 * kMb);
  EXPECT_EQ(spool().capacity(), 5 * kMb);
  EXPECT_EQ(change_spool(kMaxSpoolMb + 1), "a spool has at most 65536 MB");
  EXPECT_EQ(spool().limit(), 5 * kMb);
}

TEST_F(BufferingTest, SpoolThatHoldsPagesDoesNotGrow) {
  set_folder(folder_.path().native());
  parts_->buffering.open_spool();
  SpoolChain chain{};
  PageHeader page{};
  const std::vector<uint8_t> bytes(1000, 7);
  page.record_count = 1;
  page.raw_bytes = 1000;
  ASSERT_TRUE(spool().append(chain, page, bytes, now_ms_));
  EXPECT_EQ(change_spool(3), "the spool can't grow while it holds pages");
  EXPECT_EQ(change_spool(1), "") << "but it takes less";
  EXPECT_EQ(spool().bytes(), 1000u);
}

TEST_F(BufferingTest, SpoolNeedsAFolderUnlessItsSizeIsZero) {
  EXPECT_EQ(change_spool(1),
            "the program was started without a folder for a spool: set COLLECT_SPOOL there");
  EXPECT_EQ(change_spool(0), "");
  EXPECT_FALSE(spool().is_open());
}

TEST_F(BufferingTest, AfterAPolicyThatIsRefusedTheSpoolStays) {
  set_folder(folder_.path().native());
  parts_->buffering.open_spool();
  EXPECT_NE(change_spool(1, kOverwrite), "");
  EXPECT_EQ(spool().limit(), 2 * kMb);
  EXPECT_EQ(change_spool(1, kWait), "");
  EXPECT_EQ(spool().limit(), 1 * kMb);
  EXPECT_EQ(full_policy(), FullPolicy::kWait);
}

}  // namespace
}  // namespace collect::agent
