// Which sessions are ready for their upload, and when they are looked at.
#include "daemon/ctl/store/sealed_sessions.h"

#include <gtest/gtest.h>

#include "storage/fs/posix_fs.h"
#include "storage/manifest/manifest.h"
#include "storage/manifest/manifest_file.h"
#include "tests/storage/session_fixture.h"

namespace collect::ctl {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

class SealedSessionsTest : public testing::Test {
 protected:
  // A session whose manifest says so much.
  void put(const std::string& name, storage::SessionState state,
           storage::SymbolsState symbols = storage::SymbolsState::kDone, uint64_t events = 0) {
    const std::string directory = root_ + "/" + name;
    ASSERT_TRUE(fs_.make_directories(directory).ok());
    storage::Manifest manifest;
    manifest.state = state;
    manifest.symbols_state = symbols;
    manifest.finished_unix_ns = 1000 * kSecond;
    manifest.totals.events = events;
    manifest.identity.collector.id[0] = 0xab;
    manifest.identity.collector.epoch = 7;
    ASSERT_TRUE(storage::write_manifest(fs_, directory, manifest, false).ok());
  }
  std::vector<std::string> look(uint64_t at_s, uint64_t unix_s = 1001) {
    return look(sessions_, at_s, unix_s);
  }
  static std::vector<std::string> look(SealedSessions& sessions, uint64_t at_s, uint64_t unix_s) {
    const auto ready = sessions.look(at_s * kSecond, unix_s * kSecond);
    EXPECT_TRUE(ready.ok());
    std::vector<std::string> names;
    for (const auto& one : *ready) {
      names.push_back(one.session_path.name);
      EXPECT_EQ(one.part.collector, "ab000000000000000000000000000000");
      EXPECT_EQ(one.part.epoch, "7");
    }
    return names;
  }

  storage::test::TemporaryDirectory scratch_;
  const std::string root_ = scratch_.path() + "/root";
  storage::PosixFs fs_{root_};
  SealedSessions sessions_{fs_, root_, false};
  SealedSessions packed_{fs_, root_, true};
};

using Names = std::vector<std::string>;
const std::string kFirst = "session_20260131_100000/pid_1";
const std::string kSecondOne = "session_20260131_100001/pid_2";

TEST_F(SealedSessionsTest, EachOnceOldestFirst) {
  put(kSecondOne, storage::SessionState::kRecovered);
  put(kFirst, storage::SessionState::kComplete);
  put("session_20260131_100000_atf1/pid_1", storage::SessionState::kComplete);
  put("session_20260131_100000_snap1/pid_1", storage::SessionState::kComplete);
  EXPECT_EQ(look(1), (Names{kFirst, kSecondOne}));
  EXPECT_EQ(look(2), Names{});
  const std::string third = "session_20260131_100002/pid_1";
  put(third, storage::SessionState::kFailed);
  EXPECT_EQ(look(3), Names{third});
}

TEST_F(SealedSessionsTest, LooksAgainAtUnsealedOrUnnamedSessions) {
  put(kFirst, storage::SessionState::kRecording);
  put(kSecondOne, storage::SessionState::kComplete, storage::SymbolsState::kPending);
  EXPECT_EQ(look(10), Names{});
  put(kFirst, storage::SessionState::kComplete);
  EXPECT_EQ(look(10), Names{}) << "not before a second is over";
  EXPECT_EQ(look(11), Names{kFirst});
  EXPECT_EQ(look(13, 1000 + 3599), Names{});
  EXPECT_EQ(look(15, 1000 + 3601), Names{kSecondOne}) << "names that do not come hold up nothing";
}

TEST_F(SealedSessionsTest, LongRecordingIsLookedAtRarely) {
  put(kFirst, storage::SessionState::kRecording);
  EXPECT_EQ(look(0), Names{});
  EXPECT_EQ(look(3600), Names{});
  put(kFirst, storage::SessionState::kComplete);
  EXPECT_EQ(look(3615), Names{});
  EXPECT_EQ(look(3616), Names{kFirst});
}

TEST_F(SealedSessionsTest, UnreadableManifestHoldsUpNoOther) {
  put(kFirst, storage::SessionState::kComplete);
  ASSERT_TRUE(fs_.make_directories(root_ + "/" + kSecondOne).ok());
  EXPECT_EQ(look(0), Names{kFirst});
  put(kSecondOne, storage::SessionState::kComplete);
  EXPECT_EQ(look(1), Names{kSecondOne});
}

TEST_F(SealedSessionsTest, NoRootIsAnError) {
  EXPECT_FALSE(sessions_.look(0, 0).ok());
}

TEST_F(SealedSessionsTest, PackingIsWaitedForAnHour) {
  put(kFirst, storage::SessionState::kComplete, storage::SymbolsState::kDone, 5);
  put(kSecondOne, storage::SessionState::kComplete, storage::SymbolsState::kDone, 5);
  const std::string empty = "session_20260131_100002/pid_3";
  put(empty, storage::SessionState::kComplete);
  EXPECT_EQ(look(packed_, 1, 1001), (Names{empty})) << "of it nothing is packed";
  const std::string table = root_ + "/" + kFirst + "/" + storage::kPackedLanesFile;
  ASSERT_TRUE(fs_.open(table, storage::OpenMode::kCreate).ok());
  EXPECT_EQ(look(packed_, 10, 1010), (Names{kFirst}));
  EXPECT_EQ(look(packed_, 3599, 4599), Names{});
  EXPECT_EQ(look(packed_, 3700, 4700), (Names{kSecondOne}));
}

}  // namespace
}  // namespace collect::ctl
