// The streams of other formats of one session: files and entries in step.
#include "storage/container/passthrough_streams.h"

#include <gtest/gtest.h>

#include "tests/fakes/dial9_stream.h"
#include "tests/storage/session_fixture.h"

namespace collect::storage {
namespace {

constexpr PassthroughKind kKind = PassthroughKind::kDial9;

class PassthroughStreamsTest : public testing::Test {
 protected:
  std::string path() const { return directory_ + "/" + passthrough_file_name(kKind); }
  void store(Bytes bytes) {
    PassthroughStreams streams(fs_, directory_);
    auto file = streams.create(kKind, manifest_);
    ASSERT_OK(file);
    const Bytes parts[] = {bytes};
    ASSERT_OK((*file)->append(parts));
    streams.refresh(manifest_);
  }

  PosixFs fs_;
  test::TemporaryDirectory made_;
  const std::string directory_ = made_.path();
  Manifest manifest_;
};

TEST_F(PassthroughStreamsTest, OneOfEachKindIsMade) {
  PassthroughStreams streams(fs_, directory_);
  ASSERT_OK(streams.find(kKind));
  EXPECT_EQ(*streams.find(kKind), nullptr);
  const auto made = streams.create(kKind, manifest_);
  ASSERT_OK(made);
  EXPECT_EQ(*streams.find(kKind), *made);
  ASSERT_EQ(manifest_.passthrough_streams.size(), 1u);
  EXPECT_EQ(manifest_.passthrough_streams[0].kind, kKind);
  const Bytes parts[] = {fakes::kDial9Example};
  ASSERT_OK((*made)->append(parts));
  EXPECT_EQ(streams.bytes(), fakes::kDial9Example.size());
  streams.refresh(manifest_);
  EXPECT_EQ(manifest_.passthrough_streams[0].bytes, fakes::kDial9Example.size());
  EXPECT_OK(streams.sync());
  EXPECT_OK(streams.seal(true));
}

TEST_F(PassthroughStreamsTest, ReopeningCutsBackToWholeFrames) {
  store(Bytes(fakes::kDial9Example).first(30));  // 26 and the beginning of a frame
  PassthroughStreams streams(fs_, directory_);
  std::vector<std::string> problems;
  ASSERT_OK(streams.reopen(manifest_, &problems));
  EXPECT_EQ(streams.bytes(), 26u);
  EXPECT_EQ(manifest_.passthrough_streams[0].refused_bytes, 4u);
  EXPECT_EQ(problems.size(), 1u);
  EXPECT_FALSE(manifest_.passthrough_streams[0].problem.empty());
}

TEST_F(PassthroughStreamsTest, FileThatNoManifestNamesIsTakenUp) {
  store(fakes::kDial9Example);
  Manifest none;
  PassthroughStreams streams(fs_, directory_);
  std::vector<std::string> problems;
  ASSERT_OK(streams.reopen(none, &problems));
  ASSERT_EQ(none.passthrough_streams.size(), 1u);
  EXPECT_EQ(streams.bytes(), fakes::kDial9Example.size());
  EXPECT_TRUE(problems.empty());
}

TEST_F(PassthroughStreamsTest, FileThatIsGoneIsSaid) {
  store(fakes::kDial9Example);
  std::filesystem::remove(path());
  PassthroughStreams streams(fs_, directory_);
  std::vector<std::string> problems;
  ASSERT_OK(streams.reopen(manifest_, &problems));
  EXPECT_EQ(problems.size(), 1u);
  EXPECT_EQ(streams.find(kKind).code(), Code::kIo);
  EXPECT_EQ(streams.bytes(), 0u);
}

}  // namespace
}  // namespace collect::storage
