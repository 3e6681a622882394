// `collectctl recover` on a session directory, row by row of STORAGE.md "Recovery": it does what
// the daemon's next start would, and its exit code says whether something is missing.
#include "daemon/ctl/convert/recover.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "storage/fs/posix_fs.h"
#include "storage/model/session_layout.h"
#include "tests/storage/found_states.h"
#include "tests/storage/session_fixture.h"

namespace collect::ctl {
namespace {

using storage::test::FoundState;

class RecoverSessionTest : public ::testing::TestWithParam<FoundState> {
 protected:
  int run(const std::string& path) {
    out_.str("");
    err_.str("");
    RecoverOptions options;
    options.path = path;
    return recover(options, out_, err_);
  }
  storage::test::TemporaryDirectory root_;
  std::ostringstream out_;
  std::ostringstream err_;
};

TEST_P(RecoverSessionTest, DoesWhatTheTableSays) {
  const FoundState& found = GetParam();
  const std::string directory = found.make(root_.path());
  const int code = run(directory);
  SCOPED_TRACE(out_.str() + err_.str());
  if (found.removed || !found.seen_offline) {
    // Nothing is there that it would take for a session: said, and left to the daemon.
    EXPECT_EQ(code, 2);
    EXPECT_TRUE(std::filesystem::exists(directory));
    return;
  }
  EXPECT_EQ(code, found.has_problems ? 1 : 0);
  EXPECT_EQ(err_.str().find("missing") != std::string::npos, found.has_problems);
  expect_recovered_as(found, directory);
  EXPECT_EQ(run(directory), 0);
  EXPECT_NE(out_.str().find("was sealed already"), std::string::npos) << out_.str();
}

INSTANTIATE_TEST_SUITE_P(Rows, RecoverSessionTest,
                         ::testing::ValuesIn(storage::test::found_states()),
                         [](const auto& row) { return std::string(row.param.row); });

TEST_F(RecoverSessionTest, RootInUseIsLeftAlone) {
  const FoundState& found = storage::test::found_states()[1];
  const std::string directory = found.make(root_.path());
  storage::PosixFs fs;
  auto daemon = storage::RootLock::take(fs, root_.path());
  ASSERT_TRUE(daemon.ok());
  EXPECT_EQ(run(directory), 2);
  EXPECT_NE(err_.str().find(root_.path()), std::string::npos) << err_.str();
  const auto manifest = storage::read_manifest(fs, directory);
  ASSERT_TRUE(manifest.ok());
  EXPECT_EQ(manifest->state, storage::SessionState::kRecording);
}

}  // namespace
}  // namespace collect::ctl
