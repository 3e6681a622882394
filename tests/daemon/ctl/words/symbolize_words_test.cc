// What `symbolize` makes of a session and says of it: expected/symbolize.txt.
#include <gtest/gtest.h>

#include <filesystem>

#include "daemon/symbolize/symbolizer.h"
#include "storage/fs/posix_fs.h"
#include "storage/manifest/manifest_file.h"
#include "storage/model/session_layout.h"
#include "tests/daemon/ctl/words/words_fixture.h"
#include "tests/daemon/symbolize/poison.h"

namespace collect::ctl {
namespace {

namespace fs = std::filesystem;
using testing::change_manifest;
using testing::WordsTest;

TEST_F(WordsTest, SymbolizeOutputMatchesCommittedText) {
  ASSERT_TRUE(fs::exists(symbolize::symbolizer_program()));
  const fs::path session = testing::small_session(root_ / "s", atf::Version::kV2);
  link("session", session);
  // Of the three functions of the module, two are in the file with its build id.
  symbolize::test::ElfFile file;
  file.build_id = {1, 2, 0xAB};
  file.symbols = {{0x10, "main"}, {0x40, "_ZN3app5shapeEi"}};
  put("symbols/libx.so", file.bytes());
  put("others/libx.so", symbolize::test::ElfFile().bytes());
  put("file", {1});
  EXPECT_EQ(run("symbolize session"), 1);
  EXPECT_EQ(run("symbolize --json --symbols others session"), 1);
  EXPECT_EQ(run("symbolize --symbols others --symbols symbols session"), 0);
  EXPECT_EQ(run("symbolize --json --symbols symbols session"), 0);
  run("dump --thread 102 session");
  run("verify session");
  // The directory above it; a module without a path.
  change_manifest(session, [](storage::Manifest& manifest) { manifest.modules[0].path = ""; });
  EXPECT_EQ(run("symbolize --symbols symbols s"), 0) << "its names of before stay";
  // What is not changed.
  EXPECT_EQ(run("symbolize nothing"), 2);
  EXPECT_EQ(run("symbolize session/thread_0"), 2);
  EXPECT_EQ(run("symbolize session/thread_0/index.atf"), 2);
  EXPECT_EQ(run("symbolize --symbols none session"), 2);
  EXPECT_EQ(run("symbolize --symbols file session"), 2);
  {
    storage::PosixFs files;
    auto lock = storage::RootLock::take(files, (root_ / "s").string());
    ASSERT_TRUE(lock.ok());
    EXPECT_EQ(run("symbolize --symbols symbols session"), 0) << "it has been named";
    change_manifest(session, [](storage::Manifest& manifest) {
      manifest.symbols_state = storage::SymbolsState::kPending;
    });
    EXPECT_EQ(run("symbolize --symbols symbols session"), 2);
  }
  EXPECT_EQ(run("symbolize --symbols symbols session"), 0);
  storage::PosixFs named;
  EXPECT_EQ(storage::read_manifest(named, session.string())->symbols_state,
            storage::SymbolsState::kDone);
  change_manifest(session, [](storage::Manifest& manifest) {
    manifest.state = storage::SessionState::kRecording;
  });
  EXPECT_EQ(run("symbolize session"), 2);
  put("session/manifest.json",
      {'{', '"', 't', 'h', 'r', 'e', 'a', 'd', 's', '"', ':', '[', ']', '}'});
  EXPECT_EQ(run("symbolize session"), 2);
  put("session/manifest.json", {'{'});
  EXPECT_EQ(run("symbolize session"), 2);
  fs::remove(session / "manifest.json");
  EXPECT_EQ(run("symbolize session"), 2);
  // Of someone's own place, which is no root of a collector.
  fs::rename(testing::other_session(root_ / "o"), root_ / "mine");
  EXPECT_EQ(run("symbolize --symbols symbols mine"), 1) << "one function is of no module";
  EXPECT_FALSE(fs::exists(root_ / ".collectord.lock"));
  expect_words("symbolize");
}

}  // namespace
}  // namespace collect::ctl
