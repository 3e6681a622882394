// durability = object: what a session reports waits for the store.
#include <gmock/gmock.h>

#include <deque>

#include "tests/daemon/ingest/session_queue_fixture.h"

namespace collect::ingest {
namespace {

using testing::SizeIs;

// Has what it was asked for when the test says so.
class FakeSegmentStore final : public SegmentStore {
 public:
  void store(StoredChanges changes, std::function<void()> done) override {
    const std::lock_guard lock(mutex_);
    changes_.push_back(std::move(changes));
    waiting_.push_back(std::move(done));
  }
  size_t asked() {
    const std::lock_guard lock(mutex_);
    return changes_.size();
  }
  StoredChanges last() {
    const std::lock_guard lock(mutex_);
    return changes_.back();
  }
  void finish() {
    std::function<void()> done;
    {
      const std::lock_guard lock(mutex_);
      ASSERT_FALSE(waiting_.empty());
      done = std::move(waiting_.front());
      waiting_.pop_front();
    }
    done();
  }

 private:
  std::mutex mutex_;
  std::vector<StoredChanges> changes_;
  std::deque<std::function<void()>> waiting_;
};

class SessionSegmentsTest : public SessionQueueTest {
 protected:
  ~SessionSegmentsTest() override {
    if (core_) core_->stop_threads();
  }
  void record() {
    options_.segments = &store_;
    options_.segment_pace = milliseconds(1);
    begin();
    open();
    ASSERT_TRUE(loop_.run_until([&] { return store_.asked() == 1; }));
    store_.finish();  // the first manifest
    push(storage::StreamInfo{1, 11, "thread", 1});
  }
  void page(uint64_t first) {
    push_page(first, events_[first]);
    settle();
  }
  void wait_for_requests(size_t count) {
    ASSERT_TRUE(loop_.run_until([&] { return store_.asked() >= count; }));
  }

  const std::vector<uint8_t> events_[3] = {fakes::index_events(0, 1), fakes::index_events(1, 1),
                                           fakes::index_events(2, 1)};
  FakeSegmentStore store_;
};

TEST_F(SessionSegmentsTest, TheFirstRequestIsSaidToBeOne) {
  options_.segments = &store_;
  begin();
  open();
  ASSERT_TRUE(loop_.run_until([&] { return store_.asked() == 1; }));
  EXPECT_TRUE(store_.last().is_first);
  EXPECT_FALSE(store_.last().is_last);
  EXPECT_EQ(store_.last().session, opened_->name);
  EXPECT_TRUE(store_.last().files.contains("manifest.json"));
  EXPECT_FALSE(store_.last().files.contains("resume.key"));
}

TEST_F(SessionSegmentsTest, AnAckWaitsForTheStore) {
  record();
  page(0);
  wait_for_requests(2);
  settle();
  EXPECT_THAT(stored_, SizeIs(0));
  bool has_index = false;  // a request that the store has finished
  for (size_t asked = store_.asked(); stored_[1].index_next == 0; asked = store_.asked()) {
    EXPECT_FALSE(store_.last().is_first);
    has_index = has_index || store_.last().files.contains("thread_0/index.atf");
    store_.finish();
    ASSERT_TRUE(
        loop_.run_until([&] { return stored_[1].index_next == 1 || store_.asked() > asked; }));
    ASSERT_LT(asked, 10u);
  }
  EXPECT_TRUE(has_index);
}

TEST_F(SessionSegmentsTest, OneRequestAtATimeAndAnAgentThatComesBackHearsWhatIsThere) {
  record();
  page(0);
  wait_for_requests(2);
  page(1);
  page(2);
  EXPECT_EQ(store_.asked(), 2u);
  want_positions(1);
  settle();
  EXPECT_EQ(answered_, 1u);
  EXPECT_EQ(stored_[1].index_next, 0u);
  for (size_t asked = 2; stored_[1].index_next != 3; ++asked) {
    store_.finish();
    ASSERT_TRUE(
        loop_.run_until([&] { return stored_[1].index_next == 3 || store_.asked() == asked + 1; }));
    ASSERT_LT(asked, 10u);
  }
}

TEST_F(SessionSegmentsTest, ASealWaitsForTheStoreBeforeAndAfter) {
  record();
  page(0);
  wait_for_requests(2);
  queue_->seal(storage::SessionState::kComplete, "exit");
  std::optional<Result<std::string>> behind;
  ask(behind);
  ASSERT_TRUE(loop_.run_until([&] { return behind.has_value(); }));
  // What it was asked for is read from files that are not sealed.
  EXPECT_EQ(on_disk().state, storage::SessionState::kRecording);
  store_.finish();
  wait_for_requests(3);
  EXPECT_TRUE(store_.last().is_last);
  EXPECT_EQ(on_disk().state, storage::SessionState::kComplete);
  EXPECT_FALSE(sealed_.has_value());
  store_.finish();
  ASSERT_TRUE(loop_.run_until([&] { return sealed_.has_value(); }));
  EXPECT_EQ(sealed_->reason, "exit");
}

TEST_F(SessionSegmentsTest, ARepeatedRecordingIsOverWhenTheStoreHasIt) {
  begin();
  open();
  queue_->seal(storage::SessionState::kComplete, "exit");
  ASSERT_TRUE(loop_.run_until([&] { return sealed_.has_value(); }));
  const std::string name = opened_->name;
  options_.segments = &store_;
  begin();
  storage::SessionPath session_path = *storage::parse_session_path(options_.storage.root, name);
  core_->completed.add({7}, 1, session_path);
  storage::SessionIdentity identity;
  identity.process_id = {7};
  identity.recording = 1;
  open_as(*queue_, identity);
  ASSERT_TRUE(loop_.run_until([&] { return store_.asked() == 1; }));
  EXPECT_TRUE(store_.last().is_first);
  EXPECT_TRUE(store_.last().is_last);
  EXPECT_FALSE(last_.repeated.has_value());
  store_.finish();
  ASSERT_TRUE(loop_.run_until([&] { return last_.repeated.has_value(); }));
  EXPECT_EQ(*last_.repeated, name);
}

}  // namespace
}  // namespace collect::ingest
