#include "storage/model/collector_identity.h"

#include "storage/model/session_layout.h"
#include "tests/storage/fault_fs.h"
#include "tests/storage/session_fixture.h"

namespace collect::storage {
namespace {

using namespace test;

class CollectorIdentityTest : public testing::Test {
 protected:
  std::string root() const { return directory_.path() + "/a/root"; }
  static std::string read_text(const std::string& path) {
    const std::vector<uint8_t> bytes = read_file(path);
    return {bytes.begin(), bytes.end()};
  }
  static void write_text(const std::string& path, const std::string& text) {
    write_file(path, {text.begin(), text.end()});
  }

  TemporaryDirectory directory_;
  PosixFs fs_;
};

TEST_F(CollectorIdentityTest, IsDrawnOnceForARoot) {
  const auto first = read_collector_identity(fs_, root(), 5'000'000'000);
  ASSERT_OK(first);
  EXPECT_TRUE(first->is_known());
  EXPECT_EQ(first->epoch, 5000u);
  const auto again = read_collector_identity(fs_, root(), 7'000'000'000);
  ASSERT_OK(again);
  EXPECT_EQ(again->id, first->id);
  EXPECT_EQ(again->epoch, 7000u);
  const auto other = read_collector_identity(fs_, directory_.path() + "/b", 5'000'000'000);
  ASSERT_OK(other);
  EXPECT_NE(other->id, first->id);
}

TEST_F(CollectorIdentityTest, FileThatIsNoIdIsNotReplaced) {
  ASSERT_OK(fs_.make_directories(root()));
  const std::string path = root() + "/" + kCollectorIdFile;
  for (const std::string& text :
       {std::string(), std::string("00ff\n"), std::string("0123456789abcdef0123456789abcdeg\n")}) {
    write_text(path, text);
    const auto read = read_collector_identity(fs_, root(), 1);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.error().code, Code::kDamaged);
    EXPECT_NE(read.error().message.find(path), std::string::npos);
    EXPECT_EQ(read_text(path), text);
  }
  write_text(path, std::string(65, '0'));
  EXPECT_EQ(read_collector_identity(fs_, root(), 1).error().code, Code::kLimit);
  write_text(path, "000102030405060708090a0b0c0d0e0f\n");
  const auto read = read_collector_identity(fs_, root(), 1'000'000);
  ASSERT_OK(read);
  EXPECT_EQ(collector_name(*read), "000102030405060708090a0b0c0d0e0f-1");
  EXPECT_EQ(collector_name({}), "");
}

TEST_F(CollectorIdentityTest, IsInTheManifestOfSessionsItBegan) {
  SessionOptions options;
  options.root = root();
  options.symbolize = false;
  options.collector = draw_collector_identity(9'000'000);
  auto session = Session::create(fs_, options, test_identity());
  ASSERT_OK(session);
  const std::string directory = (*session)->directory();
  const auto manifest = read_manifest(fs_, directory);
  ASSERT_OK(manifest);
  EXPECT_EQ(manifest->identity.collector, options.collector);
  // A later one that continues with it changes nothing.
  session->reset();
  options.collector = draw_collector_identity(10'000'000);
  auto resumed = Session::resume(fs_, options, directory);
  ASSERT_OK(resumed);
  EXPECT_EQ((*resumed)->identity().collector.epoch, 9u);
}

}  // namespace
}  // namespace collect::storage
