// The containers of one session, one after the other: when the next begins, what is known of those
// that are there, and what happens when one can't be written.
#include "storage/container/rtc_roller.h"

#include "formats/rtc/check.h"
#include "tests/fakes/dial9_stream.h"
#include "tests/storage/fault_fs.h"
#include "tests/storage/session_fixture.h"

namespace collect::storage::test {
namespace {

namespace filesystem = std::filesystem;

class RtcRollerTest : public SessionTest {
 protected:
  RtcRollerTest() : stream_(atf::Version::kV2, 1, 100) {
    stream_.add_many(200);
    manifest_.identity = test_identity();
  }

  std::unique_ptr<RtcRoller> roller(CaptureOptions capture = {},
                                    Durability durability = Durability::kOs) {
    capture.enabled = true;
    return std::make_unique<RtcRoller>(disk_, root.path(), capture, durability, clock);
  }
  Status record(RtcRoller& roller, uint64_t first = 0, uint64_t count = 50) {
    COLLECT_TRY(roller.make_room(manifest_));
    roller.page(stream_.index_page(first, count));
    return {};
  }
  std::string path(uint32_t number) const { return root.path() + "/" + container_name(number); }
  uint64_t size_of(uint32_t number) const { return filesystem::file_size(path(number)); }
  void expect_whole(uint32_t number) {
    const auto summary = rtc::check_file(read_file(path(number)));
    ASSERT_OK(summary);
    EXPECT_EQ(summary->findings.errors(), 0u) << number;
  }

  FaultFs disk_;
  FakeStream stream_;
  Manifest manifest_;
};

TEST_F(RtcRollerTest, DoesNotWriteWhenOff) {
  RtcRoller off(disk_, root.path(), {}, Durability::kOs, clock);
  EXPECT_FALSE(off.wants_room());
  EXPECT_OK(record(off));
  off.finish(manifest_);
  EXPECT_TRUE(off.containers().empty());
  EXPECT_EQ(off.roll(manifest_).code(), Code::kUnsupported);
  EXPECT_TRUE(disk_.list_directory(root.path())->empty());
}

TEST_F(RtcRollerTest, NextBeginsAtTheSize) {
  auto first = roller();
  EXPECT_TRUE(first->wants_room());
  ASSERT_OK(record(*first));
  EXPECT_FALSE(first->wants_room());
  first->finish(manifest_);
  const uint64_t bytes = size_of(1);
  filesystem::remove(path(1));
  for (const uint64_t limit : {bytes / 2, 2 * bytes}) {
    auto next = roller({.roll_bytes = limit});
    ASSERT_OK(record(*next));
    EXPECT_EQ(next->wants_room(), limit < bytes);
    next->finish(manifest_);
    filesystem::remove(path(1));
  }
}

TEST_F(RtcRollerTest, NextBeginsAtExactlyTheAge) {
  auto aged = roller({.roll_bytes = 0, .roll_ns = 1000});
  ASSERT_OK(record(*aged));
  clock.monotonic += 999;
  EXPECT_FALSE(aged->wants_room());
  clock.monotonic += 1;
  EXPECT_TRUE(aged->wants_room());
  ASSERT_OK(record(*aged));
  EXPECT_EQ(aged->containers().size(), 2u);
  clock.monotonic += 999;
  EXPECT_FALSE(aged->wants_room());
  auto ageless = roller({.roll_bytes = 0, .roll_ns = 0});
  ageless->adopt({}, 0);
  ASSERT_OK(record(*ageless));
  clock.monotonic += uint64_t{1} << 60;
  EXPECT_FALSE(ageless->wants_room());
}

TEST_F(RtcRollerTest, TracksBytesAndStateOfEachContainer) {
  auto rolling = roller();
  ASSERT_OK(record(*rolling));
  const Page page = stream_.index_page(0, 50);
  EXPECT_TRUE(rolling->unflushed());
  rolling->flush();
  EXPECT_FALSE(rolling->unflushed());
  ASSERT_EQ(rolling->containers().size(), 1u);
  EXPECT_EQ(rolling->containers()[0].state, "open");
  EXPECT_EQ(rolling->containers()[0].bytes, rolling->bytes());
  EXPECT_LE(rolling->bytes(), size_of(1));
  EXPECT_GT(rolling->bytes(), 0u);
  EXPECT_EQ(*rolling->roll(manifest_), path(2));
  ASSERT_OK(record(*rolling, 50));
  rolling->finish(manifest_);
  ASSERT_EQ(rolling->containers().size(), 2u);
  uint64_t bytes = 0;
  for (uint32_t number = 1; number <= 2; ++number) {
    expect_whole(number);
    const Container& container = rolling->containers()[number - 1];
    EXPECT_EQ(container.name, container_name(number));
    EXPECT_EQ(container.state, "finished");
    EXPECT_EQ(container.bytes, size_of(number));
    EXPECT_EQ(container.first_ns, page.first_ns);
    bytes += container.bytes;
  }
  EXPECT_EQ(rolling->bytes(), bytes);
  EXPECT_EQ(rolling->removed(), 0u);
}

TEST_F(RtcRollerTest, EveryChangeWaitsToBeFlushed) {
  auto rolling = roller();
  rolling->change({.notes = {{1, "before any container"}}});
  rolling->log("before any container");
  rolling->marker({1, "before any container"});
  rolling->page(stream_.index_page(0, 50));
  const Bytes frame(fakes::kDial9Example);
  rolling->passthrough(PassthroughKind::kDial9, {&frame, 1});
  EXPECT_FALSE(rolling->unflushed());
  ASSERT_OK(record(*rolling));
  const auto waits = [&](auto tell) {
    rolling->flush();
    EXPECT_FALSE(rolling->unflushed());
    const uint64_t before = rolling->bytes();
    tell();
    EXPECT_TRUE(rolling->unflushed());
    rolling->flush();
    EXPECT_GT(rolling->bytes(), before);
  };
  waits([&] { rolling->change({.notes = {{1, "note"}}}); });
  waits([&] { rolling->log("line"); });
  waits([&] { rolling->marker({1, "marker"}); });
  waits([&] { rolling->page(stream_.index_page(50, 50)); });
  waits([&] { rolling->passthrough(PassthroughKind::kDial9, {&frame, 1}); });
  EXPECT_EQ(rolling->take_problem(), std::nullopt);
}

TEST_F(RtcRollerTest, ContainersOfBeforeAreTakenUp) {
  {
    auto before = roller();
    ASSERT_OK(record(*before));
    ASSERT_OK(before->roll(manifest_));
    ASSERT_OK(before->roll(manifest_));
    before->finish(manifest_);
    manifest_.containers = before->containers();
  }
  ASSERT_EQ(manifest_.containers.size(), 3u);
  // Of the second the manifest is older; the first is gone; the seventh is not named.
  manifest_.containers[1].state = "open";
  manifest_.containers[1].bytes = 1;
  filesystem::remove(path(1));
  write_file(path(7), std::vector<uint8_t>(123));
  write_file(root.path() + "/capture-x.rtc", {1});
  auto after = roller();
  after->adopt(manifest_.containers, 5);
  EXPECT_EQ(after->removed(), 6u);
  ASSERT_EQ(after->containers().size(), 3u);
  EXPECT_EQ(after->containers()[0].name, container_name(2));
  EXPECT_EQ(after->containers()[0].state, "unfinished");
  EXPECT_EQ(after->containers()[0].bytes, size_of(2));
  EXPECT_EQ(after->containers()[1].state, "finished");
  EXPECT_EQ(after->containers()[2].state, "unfinished");
  EXPECT_EQ(after->containers()[2].bytes, 123u);
  EXPECT_EQ(after->bytes(), size_of(2) + size_of(3) + 123);
  ASSERT_OK(record(*after));
  EXPECT_EQ(after->containers().back().name, container_name(8));
}

TEST_F(RtcRollerTest, KeepsTheNewestWithinTheExactBudget) {
  {
    auto three = roller();
    for (int i = 0; i < 3; ++i) {
      ASSERT_OK(record(*three));
      three->end_container(manifest_);
    }
    EXPECT_EQ(three->containers().size(), 3u);
  }
  const uint64_t all = size_of(1) + size_of(2) + size_of(3);
  const uint64_t one = size_of(3);
  for (uint32_t number = 1; number <= 3; ++number) filesystem::remove(path(number));
  struct Case {
    uint64_t budget;
    size_t kept;
  };
  for (const auto& [budget, kept] : {Case{0, 3}, Case{all, 3}, Case{all - 1, 2}, Case{1, 1}}) {
    SCOPED_TRACE(budget);
    auto rolling = roller({.budget_bytes = budget});
    for (int i = 0; i < 3; ++i) {
      ASSERT_OK(record(*rolling));
      rolling->end_container(manifest_);
    }
    EXPECT_EQ(rolling->containers().size(), kept);
    EXPECT_EQ(rolling->removed(), 3 - kept);
    EXPECT_EQ(rolling->bytes(), kept == 3 ? all : kept * one);
    EXPECT_EQ(rolling->containers().back().name, container_name(3));
    EXPECT_EQ(disk_.list_directory(root.path())->size(), kept);
    for (uint32_t number = 1; number <= 3; ++number) filesystem::remove(path(number));
  }
}

TEST_F(RtcRollerTest, ContainerThatCannotGoIsAProblem) {
  auto rolling = roller({.budget_bytes = 1});
  ASSERT_OK(record(*rolling));
  rolling->end_container(manifest_);
  ASSERT_OK(record(*rolling));
  filesystem::remove(path(1));
  rolling->end_container(manifest_);
  EXPECT_FALSE(rolling->enabled());
  EXPECT_NE(rolling->take_problem()->find(container_name(1)), std::string::npos);
  EXPECT_EQ(rolling->containers().size(), 2u);
}

TEST_F(RtcRollerTest, ReleasedFileIsClosedAndGoneOnWith) {
  auto rolling = roller({}, Durability::kFsync);
  EXPECT_EQ(rolling->open_files(), 0u);
  rolling->release_file();
  ASSERT_OK(rolling->hold_file());
  EXPECT_EQ(rolling->open_files(), 0u);
  ASSERT_OK(record(*rolling));
  EXPECT_EQ(rolling->open_files(), 1u);
  const uint64_t before = disk_.changes();
  rolling->release_file();
  EXPECT_GT(disk_.changes(), before);
  EXPECT_EQ(rolling->open_files(), 0u);
  EXPECT_FALSE(rolling->unflushed());
  rolling->release_file();
  EXPECT_FALSE(rolling->wants_room());
  ASSERT_OK(rolling->hold_file());
  EXPECT_EQ(rolling->open_files(), 1u);
  ASSERT_OK(record(*rolling, 50));
  rolling->finish(manifest_);
  EXPECT_EQ(rolling->open_files(), 0u);
  expect_whole(1);
}

// What was released is synced, as what is committed: at every change that can fail.
TEST_F(RtcRollerTest, FailureEndsTheContainersAndIsSaidOnce) {
  for (uint64_t change = 0;; ++change) {
    SCOPED_TRACE(change);
    FaultFs failing;
    RtcRoller rolling(failing, root.path(), {.enabled = true}, Durability::kFsync, clock);
    failing.set_plan({.fail_at = change});
    Status made = rolling.make_room(manifest_);
    rolling.page(stream_.index_page(0, 50));
    rolling.release_file();
    EXPECT_OK(rolling.hold_file());
    rolling.page(stream_.index_page(50, 50));
    rolling.finish(manifest_);
    EXPECT_OK(made);
    const auto problem = rolling.take_problem();
    EXPECT_EQ(problem.has_value(), failing.failed());
    EXPECT_EQ(rolling.take_problem(), std::nullopt);
    EXPECT_EQ(rolling.enabled(), !failing.failed());
    EXPECT_EQ(rolling.open_files(), 0u);
    if (!failing.failed()) {
      expect_whole(1);
      EXPECT_EQ(rolling.containers().at(0).state, "finished");
      break;
    }
    EXPECT_NE(problem->find("no more containers are written: "), std::string::npos);
    if (!rolling.containers().empty()) {
      EXPECT_EQ(rolling.containers().at(0).state, "unfinished");
      EXPECT_EQ(rolling.bytes(), rolling.containers().at(0).bytes);
    }
    const auto refused = rolling.roll(manifest_);
    EXPECT_EQ(refused.code(), Code::kIo);
    EXPECT_FALSE(rolling.wants_room());
    filesystem::remove(path(1));
  }
}

TEST_F(RtcRollerTest, WithoutADescriptorTheNextBeginsLater) {
  auto rolling = roller();
  disk_.set_plan({.fail_at = disk_.changes(), .code = Code::kExhausted});
  EXPECT_EQ(rolling->make_room(manifest_).code(), Code::kExhausted);
  EXPECT_TRUE(rolling->enabled());
  EXPECT_TRUE(rolling->containers().empty());
  ASSERT_OK(record(*rolling));
  disk_.set_plan({.fail_at = UINT64_MAX});
  const auto rolled = rolling->roll(manifest_);
  ASSERT_OK(rolled);
  EXPECT_EQ(*rolled, path(2)) << "the number of one that could not be made is used again";
  EXPECT_EQ(rolling->take_problem(), std::nullopt);
}

TEST_F(RtcRollerTest, NumbersEnd) {
  write_file(path(kMaxContainerNumber - 1), {1});
  auto rolling = roller();
  rolling->adopt({}, 0);
  ASSERT_OK(record(*rolling));
  EXPECT_EQ(rolling->containers().back().name, container_name(kMaxContainerNumber));
  EXPECT_EQ(rolling->roll(manifest_).code(), Code::kLimit);
  EXPECT_FALSE(rolling->enabled());
  EXPECT_EQ(rolling->containers().back().state, "finished");
}

TEST_F(RtcRollerTest, EmptySessionHasAContainerAndNoSecondOne) {
  auto rolling = roller();
  rolling->finish(manifest_);
  ASSERT_EQ(rolling->containers().size(), 1u);
  rolling->finish(manifest_);
  EXPECT_EQ(rolling->containers().size(), 1u);
  expect_whole(1);
}

TEST_F(RtcRollerTest, AbandonedOneStaysAsItIs) {
  auto rolling = roller();
  ASSERT_OK(record(*rolling));
  rolling->flush();
  const uint64_t bytes = rolling->bytes();
  rolling->abandon();
  EXPECT_EQ(rolling->containers().at(0).state, "unfinished");
  EXPECT_EQ(rolling->bytes(), bytes);
  EXPECT_EQ(rolling->take_problem(), std::nullopt);
  rolling->abandon();
  EXPECT_EQ(rolling->bytes(), bytes);
  EXPECT_FALSE(rolling->enabled());
}

}  // namespace
}  // namespace collect::storage::test
