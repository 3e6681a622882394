// One session's queue, driven by hand: in which order tasks are done, and what is answered.
#include <gmock/gmock.h>

#include <atomic>
#include <cstring>
#include <filesystem>

#include "tests/daemon/ingest/session/session_queue_fixture.h"

namespace collect::ingest {
namespace {

using principal::Resource;
using testing::HasSubstr;

// One round at a time, with any number of threads.
TEST_F(SessionQueueTest, RoundsOfASessionAreNeverTwo) {
  options_.data_threads = 4;
  begin();
  open();
  std::atomic<int> running{0};
  std::atomic<int> most{0};
  std::atomic<int> done{0};
  constexpr int kTasks = 2'000;
  for (int at = 0; at < kTasks; ++at) {
    queue_->push([&, at](StoredSession&) {
      most = std::max<int>(most, ++running);
      EXPECT_EQ(done, at) << "in their order";
      --running;
      ++done;  // last: the test may be over then
      return Status();
    });
  }
  ASSERT_TRUE(loop_.run_until([&] { return done == kTasks; }));
  EXPECT_EQ(most, 1);
}

TEST_F(SessionQueueTest, ReportsDroppedActions) {
  begin();
  open();
  hold();
  std::atomic<int> acted{0}, dropped{0};
  queue_->seal(storage::SessionState::kComplete, "exit");
  queue_->push([&](StoredSession&) { return ++acted, Status(); }, [&] { ++dropped; });
  let_go();
  ASSERT_TRUE(loop_.run_until([&] { return dropped == 1 && sealed_.has_value(); }));
  queue_->push([&](StoredSession&) { return ++acted, Status(); }, [&] { ++dropped; });
  ASSERT_TRUE(loop_.run_until([&] { return dropped == 2; }));
  EXPECT_EQ(acted, 0);
}

TEST_F(SessionQueueTest, OrdersAreAnsweredInTheirPlace) {
  begin();
  open();
  std::optional<Result<std::string>> first, behind, late;
  ask(first);
  ASSERT_TRUE(loop_.run_until([&] { return first.has_value(); }));
  ASSERT_TRUE(first->ok());
  EXPECT_EQ(**first, opened_->name);
  hold();
  queue_->seal(storage::SessionState::kComplete, "exit");
  ask(behind);
  let_go();
  ASSERT_TRUE(loop_.run_until([&] { return behind.has_value(); }));
  EXPECT_EQ(behind->code(), Code::kUnavailable);
  EXPECT_EQ(behind->error().message, "the session is being sealed");
  ASSERT_TRUE(loop_.run_until([&] { return sealed_.has_value(); }));
  EXPECT_EQ(sealed_->state, storage::SessionState::kComplete);
  EXPECT_EQ(sealed_->reason, "exit");
  EXPECT_FALSE(sealed_->deferred);
  EXPECT_TRUE(sealed_->health.is_complete());
  ask(late);
  ASSERT_TRUE(loop_.run_until([&] { return late.has_value(); }));
  EXPECT_EQ(late->code(), Code::kUnavailable);
}

TEST_F(SessionQueueTest, StopsStoringAfterARefusal) {
  begin();
  open();
  push(storage::StreamInfo{1, 11, "thread", 1});
  push(storage::StreamEnd{.stream_id = 99, .thread_name = {}});  // of no stream
  ASSERT_TRUE(loop_.run_until([&] { return failed_.has_value(); }));
  EXPECT_FALSE(is_storage_fault(failed_->code));
  std::optional<Result<std::string>> answer;
  ask(answer);
  ASSERT_TRUE(loop_.run_until([&] { return answer.has_value(); }));
  EXPECT_EQ(answer->error().message, "nothing more is stored");
  const auto events = fakes::index_events(0, 10);
  push_pages({Page{fakes::index_page_header(1, 0, 10), events, {}}});
  queue_->seal(storage::SessionState::kComplete, "exit");
  ASSERT_TRUE(loop_.run_until([&] { return sealed_.has_value(); }));
  EXPECT_EQ(sealed_->state, storage::SessionState::kRecovered);
  EXPECT_EQ(sealed_->reason, "the agent's data was refused");
  for (const auto& [stream, position] : stored_) EXPECT_EQ(position.index_next, 0u) << stream;
  EXPECT_EQ(last_.totals.events, 0u);
  const storage::Manifest manifest = on_disk();
  ASSERT_EQ(manifest.notes.size(), 1u);
  EXPECT_THAT(manifest.notes[0].what, testing::StartsWith("the agent's data was refused: "));
}

TEST_F(SessionQueueTest, ManifestHoldsFactsOfTheRecording) {
  begin();
  open();
  storage::FunctionFilter filter;
  filter.at_ns = 5;
  filter.only = {"main"};
  filter.functions = 3;
  push(filter);
  push(storage::ClockSync{.at_ns = 6, .offset_ns = 7, .uncertainty_ns = 8});
  push_process_end({storage::ProcessEnd::How::kExited, 10}, 9);
  queue_->note("a note");
  storage::DetailStateChange change{.mode = "on", .at_ns = 100, .reason = "wanted"};
  push(change);
  push(change);  // again, after a reconnect
  change = {.mode = "off", .at_ns = 200, .reason = {}};
  push(change);
  change = {.mode = "on", .at_ns = 100, .reason = "late"};
  push(change);
  queue_->push([](StoredSession& session) { return session.writer().release_files(); });
  queue_->seal(storage::SessionState::kComplete, "");
  ASSERT_TRUE(loop_.run_until([&] { return sealed_.has_value(); }));
  const storage::Manifest manifest = on_disk();
  ASSERT_EQ(manifest.function_filters.size(), 1u);
  EXPECT_EQ(manifest.function_filters[0].functions, 3u);
  ASSERT_EQ(manifest.clock_syncs.size(), 1u);
  EXPECT_EQ(manifest.clock_syncs[0].offset_ns, 7);
  EXPECT_EQ(manifest.lost_without_stream, 9u);
  EXPECT_EQ(manifest.process_end, (storage::ProcessEnd{storage::ProcessEnd::How::kExited, 10}));
  ASSERT_EQ(manifest.notes.size(), 1u);
  EXPECT_EQ(manifest.notes[0].what, "a note");
  ASSERT_EQ(manifest.detail_windows.size(), 1u);
  EXPECT_EQ(manifest.detail_windows[0].start_ns, 100u);
  EXPECT_EQ(manifest.detail_windows[0].end_ns, 200u);
  EXPECT_FALSE(failed_.has_value());
}

TEST_F(SessionQueueTest, SuspendedSessionTakesNothingMore) {
  begin();
  open();
  hold();
  queue_->suspend("the collector stops");
  std::optional<Result<std::string>> answer;
  ask(answer);
  let_go();
  ASSERT_TRUE(loop_.run_until([this] { return suspended_ == 1; }));
  ASSERT_TRUE(loop_.run_until([&] { return answer.has_value(); }));
  EXPECT_EQ(answer->code(), Code::kUnavailable);
  EXPECT_EQ(account_->used(Resource::kDescriptors), 0u);
  const storage::Manifest manifest = on_disk();
  EXPECT_EQ(manifest.state, storage::SessionState::kRecording);
  ASSERT_EQ(manifest.notes.size(), 1u);
  EXPECT_EQ(manifest.notes[0].what, "the collector stops");
  queue_->note("too late");
  queue_->seal(storage::SessionState::kComplete, "too late");
  std::optional<Result<std::string>> late;
  ask(late);
  EXPECT_TRUE(loop_.run_until([&] { return late.has_value(); }));
  loop_.run();
  EXPECT_FALSE(sealed_.has_value());
  EXPECT_EQ(on_disk().notes.size(), 1u);
}

// Its reserve is there, and that is all that it may take of the disk.
TEST_F(SessionQueueTest, WhereTheDiskHasNoRoomNoSessionBegins) {
  for (const bool is_bytes : {true, false}) {
    options_.storage.keep_free_bytes = is_bytes ? uint64_t{1} << 62 : 0;
    options_.storage.keep_free_files = is_bytes ? 0 : uint64_t{1} << 62;
    begin();
    failed_.reset();
    sealed_.reset();
    open_as(*queue_, {});
    ASSERT_TRUE(loop_.run_until([&] { return failed_.has_value() && sealed_.has_value(); }));
    EXPECT_EQ(failed_->code, Code::kNoSpace);
    EXPECT_FALSE(opened_.has_value());
    EXPECT_EQ(sealed_->state, storage::SessionState::kFailed);
    core_->stop_threads();
    loop_.run();
    queue_.reset();
  }
}

// The agent did not hear of it: nothing of it is stored a second time.
TEST_F(SessionQueueTest, CompleteRecordingIsNotBegunAgain) {
  begin();
  open();
  queue_->seal(storage::SessionState::kComplete, "");
  ASSERT_TRUE(loop_.run_until([&] { return sealed_.has_value(); }));
  const auto first = opened_;
  opened_.reset();
  std::optional<std::string> repeated;
  queue_ = std::make_shared<SessionQueue>(core_->queue_dependencies, loop_.io().get_executor(),
                                          account_, [&](const SessionReport& report) {
                                            if (report.repeated) repeated = report.repeated;
                                            EXPECT_FALSE(report.opened.has_value());
                                          });
  storage::SessionIdentity identity;
  identity.process_id = {7};
  identity.recording = 1;
  open_as(*queue_, identity);
  ASSERT_TRUE(loop_.run_until([&] { return repeated.has_value(); }));
  EXPECT_EQ(*repeated, first->name);
}

// Records that the agent lost are behind it too, though none of them came.
TEST_F(SessionQueueTest, ClosedStreamKeepsItsCounts) {
  begin();
  open();
  push(storage::StreamInfo{1, 11, "thread", 1});
  push(storage::StreamEnd{.stream_id = 1,
                          .thread_name = {},
                          .index_count = 7,
                          .index_lost = 7,
                          .detail_count = 9,
                          .detail_lost = 9});
  ASSERT_TRUE(loop_.run_until([&] { return stored_[1].closed; }));
  EXPECT_EQ(stored_[1].index_next, 7u);
  EXPECT_EQ(stored_[1].detail_next, 9u);
}

TEST_F(SessionQueueTest, EventsAreLookedForUntilNoneAreWanted) {
  begin();
  open();
  std::atomic<int> seen{0};
  const auto events = fakes::index_events(0, 1);
  WatchedEvent call;
  call.functions.resize(1);
  std::memcpy(call.functions.data(), events.data() + offsetof(atf::IndexEventV2, function_id), 8);
  push(storage::StreamInfo{1, 11, "thread", 1});
  push(EventsWanted{{call}, [&seen](const SeenEvent&) { ++seen; }});
  push_page(0, events);
  ASSERT_TRUE(loop_.run_until([&] { return stored_[1].index_next == 1; }));
  EXPECT_EQ(seen, 1);
  push(EventsWanted{});
  push_page(1, events);
  ASSERT_TRUE(loop_.run_until([&] { return stored_[1].index_next == 2; }));
  EXPECT_EQ(seen, 1);
}

// Nothing may be acknowledged that is not there.
TEST_F(SessionQueueTest, BehindACommitThatFailsNothingIsAnswered) {
  fs_ = &faulty_;
  begin();
  open();
  push(storage::StreamInfo{1, 11, "thread", 1});
  std::optional<Result<std::string>> committed;
  ask(committed);
  ASSERT_TRUE(loop_.run_until([&] { return committed.has_value(); }));
  hold();
  faulty_.set_plan({.fail_at = faulty_.changes(), .lasting = true});
  push(storage::StreamEnd{.stream_id = 1, .thread_name = {}});
  want_positions(5);
  let_go();
  ASSERT_TRUE(loop_.run_until([&] { return failed_.has_value() && sealed_.has_value(); }));
  core_->stop_threads();
  loop_.run();
  EXPECT_EQ(failed_->code, Code::kIo);
  EXPECT_EQ(sealed_->state, storage::SessionState::kFailed);
  EXPECT_FALSE(stored_[1].closed);
  EXPECT_EQ(answered_, 0u);
}

// A place where nothing was recorded is removed; there is nothing to wait for.
TEST_F(SessionQueueTest, FailsUnrecoverableSessionsAtOnce) {
  begin();
  const std::string directory = root_ + "/session_20260101_000000/pid_1";
  std::filesystem::create_directories(directory);
  resume(directory);
  ASSERT_TRUE(loop_.run_until([&] { return sealed_.has_value(); }));
  EXPECT_EQ(sealed_->state, storage::SessionState::kFailed);
  EXPECT_THAT(sealed_->reason, HasSubstr("nothing was recorded there"));
  EXPECT_FALSE(sealed_->deferred);
  EXPECT_FALSE(opened_.has_value());
}

}  // namespace
}  // namespace collect::ingest
