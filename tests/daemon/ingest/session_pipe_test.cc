// One session's queue, driven by hand: what it holds, when it is full, and what is answered.
#include <gmock/gmock.h>

#include <atomic>
#include <cstring>
#include <filesystem>

#include "tests/daemon/ingest/session_pipe_fixture.h"

namespace collect::ingest {
namespace {

using principal::Principal;
using principal::Resource;
using testing::AllOf;
using testing::Ge;
using testing::HasSubstr;
using testing::Le;

TEST_F(SessionPipeTest, WhatWaitsIsChargedAsTheMemoryThatItTakes) {
  begin();
  open();
  hold();
  PageBatch batch;
  batch.bytes = 12'345;
  EXPECT_EQ(charged(std::move(batch)), 12'345u) << "as the records that it becomes";
  const auto about = [](uint64_t bytes) { return AllOf(Ge(bytes), Le(bytes + 2'000)); };
  const std::vector<uint8_t> bytes(5'000);
  EXPECT_THAT(charged(ForeignChunk{{}, std::vector<uint8_t>(10'000), bytes, nullptr}),
              about(15'000));
  EXPECT_THAT(charged(std::vector<storage::ModuleInfo>(10)),
              AllOf(Ge(10 * (kMaxPathBytes + 64)), Le(10 * (kMaxPathBytes + 256))));
  ArrivedStalls stalls;
  stalls.stalls.resize(64);
  EXPECT_THAT(charged(stalls), about(64 * sizeof(ArrivedStalls::Of)));
  EXPECT_THAT(charged(SessionNote{"short"}), about(kMaxNameBytes));
  let_go();
  EXPECT_TRUE(loop_.run_until([this] { return account_->used(Resource::kQueued) == 0; }));
}

TEST_F(SessionPipeTest, SoManyBytesMakeItFullAndHalfOfThemEmpty) {
  options_.queue_bytes = 1'000'000;
  begin();
  open();
  loop_.run();
  drained_ = 0;
  hold();
  PageBatch batch;
  batch.bytes = options_.queue_bytes - account_->used(Resource::kQueued) - 1;
  pipe_->push(batch);
  EXPECT_FALSE(pipe_->full());
  batch.bytes = 1;
  pipe_->push(batch);
  EXPECT_TRUE(pipe_->full());
  let_go();
  EXPECT_TRUE(loop_.run_until([this] { return drained_ == 1; }));
  EXPECT_FALSE(pipe_->full());
  pipe_->push(CommitWanted{});
  EXPECT_TRUE(loop_.run_until([this] { return account_->used(Resource::kQueued) == 0; }));
  loop_.run();
  EXPECT_EQ(drained_, 1) << "it was not full again";
}

TEST_F(SessionPipeTest, SoManyItemsMakeItFull) {
  begin();
  open();
  hold();
  for (size_t at = 1; at < kMaxQueuedItems; ++at) pipe_->push(CommitWanted{});
  EXPECT_FALSE(pipe_->full());
  pipe_->push(CommitWanted{});
  EXPECT_TRUE(pipe_->full());
  let_go();
  EXPECT_TRUE(loop_.run_until([this] { return drained_ == 1; }));
}

// Whatever others of its principal have waiting, a session may always fill its queue a little.
TEST_F(SessionPipeTest, OverTheBudgetItIsFullAsSoonAsSomethingWaits) {
  options_.queued_bytes = 2 * kLeastQueuedBytes;
  begin();
  open();
  hold();
  loop_.run();
  principal::Lease others(account_, Resource::kQueued);
  others.set(2 * kLeastQueuedBytes);
  EXPECT_TRUE(pipe_->full()) << "its order is being carried out";
  let_go();
  EXPECT_TRUE(
      loop_.run_until([&] { return account_->used(Resource::kQueued) == others.amount(); }));
  EXPECT_FALSE(pipe_->full());
}

TEST_F(SessionPipeTest, WhatWasNeverWrittenIsGivenBack) {
  begin();
  core_->writers.stop();
  pipe_->push(SessionNote{"a note"});
  EXPECT_GT(account_->used(Resource::kQueued), 0u);
  pipe_.reset();
  EXPECT_EQ(account_->used(Resource::kQueued), 0u);
}

TEST_F(SessionPipeTest, OrdersAreAnsweredInTheirPlace) {
  begin();
  open();
  std::optional<Result<std::string>> first, behind, late;
  pipe_->push(order(first));
  ASSERT_TRUE(loop_.run_until([&] { return first.has_value(); }));
  ASSERT_TRUE(first->ok());
  EXPECT_EQ(**first, opened_->name);
  hold();
  pipe_->push(SessionSeal{storage::SessionState::kComplete, "exit"});
  pipe_->push(order(behind));
  let_go();
  ASSERT_TRUE(loop_.run_until([&] { return behind.has_value(); }));
  EXPECT_EQ(behind->code(), Code::kUnavailable);
  EXPECT_EQ(behind->error().message, "the session is being sealed");
  ASSERT_TRUE(loop_.run_until([&] { return sealed_.has_value(); }));
  EXPECT_EQ(sealed_->state, storage::SessionState::kComplete);
  EXPECT_EQ(sealed_->reason, "exit");
  EXPECT_FALSE(sealed_->held_up);
  EXPECT_TRUE(sealed_->health.is_complete());
  pipe_->push(order(late));
  ASSERT_TRUE(loop_.run_until([&] { return late.has_value(); }));
  EXPECT_EQ(late->code(), Code::kUnavailable);
}

TEST_F(SessionPipeTest, WhatIsRefusedIsStoredNoMore) {
  begin();
  open();
  pipe_->push(storage::StreamInfo{1, 11, "thread", 1});
  pipe_->push(storage::StreamEnd{.stream_id = 99, .thread_name = {}});  // of no stream
  ASSERT_TRUE(loop_.run_until([&] { return failed_.has_value(); }));
  EXPECT_FALSE(is_storage_fault(failed_->code));
  std::optional<Result<std::string>> answer;
  pipe_->push(order(answer));
  ASSERT_TRUE(loop_.run_until([&] { return answer.has_value(); }));
  EXPECT_EQ(answer->error().message, "nothing more is stored");
  const auto events = fakes::index_events(0, 10);
  PageBatch batch;
  batch.pages.push_back(Page{fakes::index_page_header(1, 0, 10), events, {}});
  batch.bytes = events.size();
  pipe_->push(batch);
  pipe_->push(SessionSeal{storage::SessionState::kComplete, "exit"});
  ASSERT_TRUE(loop_.run_until([&] { return sealed_.has_value(); }));
  EXPECT_EQ(sealed_->state, storage::SessionState::kRecovered);
  EXPECT_EQ(sealed_->reason, "the agent's data was refused");
  for (const auto& [stream, position] : stored_) EXPECT_EQ(position.index_next, 0u) << stream;
  EXPECT_EQ(last_.totals.events, 0u);
  const storage::Manifest manifest = on_disk();
  ASSERT_EQ(manifest.notes.size(), 1u);
  EXPECT_THAT(manifest.notes[0].what, testing::StartsWith("the agent's data was refused: "));
}

TEST_F(SessionPipeTest, WhatIsSaidOfTheRecordingIsInItsManifest) {
  begin();
  open();
  storage::FunctionFilter filter;
  filter.at_ns = 5;
  filter.only = {"main"};
  filter.functions = 3;
  pipe_->push(filter);
  pipe_->push(storage::ClockSync{.at_ns = 6, .offset_ns = 7, .uncertainty_ns = 8});
  pipe_->push(LostWithoutStream{9});
  pipe_->push(storage::ProcessEnd{storage::ProcessEnd::How::kExited, 10});
  pipe_->push(SessionNote{"a note"});
  storage::DetailStateChange change{.mode = "on", .at_ns = 100, .reason = "wanted"};
  pipe_->push(change);
  pipe_->push(change);  // again, after a reconnect
  change = {.mode = "off", .at_ns = 200, .reason = {}};
  pipe_->push(change);
  change = {.mode = "on", .at_ns = 100, .reason = "late"};
  pipe_->push(change);
  pipe_->push(FilesIdle{});
  pipe_->push(SessionSeal{storage::SessionState::kComplete, ""});
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

TEST_F(SessionPipeTest, ASuspendedSessionTakesNothingMore) {
  begin();
  open();
  hold();
  pipe_->push(SessionSuspend{"the collector stops"});
  std::optional<Result<std::string>> answer;
  pipe_->push(order(answer));
  let_go();
  ASSERT_TRUE(loop_.run_until([this] { return suspended_ == 1; }));
  ASSERT_TRUE(loop_.run_until([&] { return answer.has_value(); }));
  EXPECT_EQ(answer->code(), Code::kUnavailable);
  EXPECT_EQ(account_->used(Resource::kDescriptors), 0u);
  const storage::Manifest manifest = on_disk();
  EXPECT_EQ(manifest.state, storage::SessionState::kRecording);
  ASSERT_EQ(manifest.notes.size(), 1u);
  EXPECT_EQ(manifest.notes[0].what, "the collector stops");
  pipe_->push(SessionNote{"too late"});
  pipe_->push(SessionSeal{storage::SessionState::kComplete, "too late"});
  EXPECT_TRUE(loop_.run_until([this] { return account_->used(Resource::kQueued) == 0; }));
  loop_.run();
  EXPECT_FALSE(sealed_.has_value());
  EXPECT_EQ(on_disk().notes.size(), 1u);
}

// Its reserve is there, and that is all that it may take of the disk.
TEST_F(SessionPipeTest, WhereTheDiskHasNoRoomNoSessionBegins) {
  for (const bool is_bytes : {true, false}) {
    options_.storage.keep_free_bytes = is_bytes ? uint64_t{1} << 62 : 0;
    options_.storage.keep_free_files = is_bytes ? 0 : uint64_t{1} << 62;
    begin();
    failed_.reset();
    sealed_.reset();
    pipe_->push(SessionOpen{{}, std::nullopt});
    ASSERT_TRUE(loop_.run_until([&] { return failed_.has_value() && sealed_.has_value(); }));
    EXPECT_EQ(failed_->code, Code::kNoSpace);
    EXPECT_FALSE(opened_.has_value());
    EXPECT_EQ(sealed_->state, storage::SessionState::kFailed);
    core_->writers.stop();
    loop_.run();
    pipe_.reset();
  }
}

// The agent did not hear of it: nothing of it is stored a second time.
TEST_F(SessionPipeTest, ACompleteRecordingIsNotBegunAgain) {
  begin();
  open();
  pipe_->push(SessionSeal{storage::SessionState::kComplete, ""});
  ASSERT_TRUE(loop_.run_until([&] { return sealed_.has_value(); }));
  const auto first = opened_;
  opened_.reset();
  std::optional<std::string> repeated;
  pipe_ = std::make_shared<SessionPipe>(core_->pipe_world, loop_.io().get_executor(), account_,
                                        [&](const SessionReport& report) {
                                          if (report.repeated) repeated = report.repeated;
                                          EXPECT_FALSE(report.opened.has_value());
                                        });
  storage::SessionIdentity identity;
  identity.process_id = {7};
  identity.recording = 1;
  pipe_->push(SessionOpen{identity, std::nullopt});
  ASSERT_TRUE(loop_.run_until([&] { return repeated.has_value(); }));
  EXPECT_EQ(*repeated, first->name);
}

// Records that the agent lost are behind it too, though none of them came.
TEST_F(SessionPipeTest, AClosedStreamStandsAtItsCounts) {
  begin();
  open();
  pipe_->push(storage::StreamInfo{1, 11, "thread", 1});
  pipe_->push(storage::StreamEnd{.stream_id = 1,
                                 .thread_name = {},
                                 .index_count = 7,
                                 .index_lost = 7,
                                 .detail_count = 9,
                                 .detail_lost = 9});
  ASSERT_TRUE(loop_.run_until([&] { return stored_[1].closed; }));
  EXPECT_EQ(stored_[1].index_next, 7u);
  EXPECT_EQ(stored_[1].detail_next, 9u);
}

TEST_F(SessionPipeTest, EventsAreLookedForUntilNoneAreWanted) {
  begin();
  open();
  std::atomic<int> seen{0};
  const auto events = fakes::index_events(0, 1);
  WatchedEvent call;
  call.functions.resize(1);
  std::memcpy(call.functions.data(), events.data() + offsetof(atf::IndexEventV2, function_id), 8);
  pipe_->push(storage::StreamInfo{1, 11, "thread", 1});
  pipe_->push(EventsWanted{{call}, [&seen](const SeenEvent&) { ++seen; }});
  push_page(0, events);
  ASSERT_TRUE(loop_.run_until([&] { return stored_[1].index_next == 1; }));
  EXPECT_EQ(seen, 1);
  pipe_->push(EventsWanted{});
  push_page(1, events);
  ASSERT_TRUE(loop_.run_until([&] { return stored_[1].index_next == 2; }));
  EXPECT_EQ(seen, 1);
}

// Nothing may be acknowledged that is not there.
TEST_F(SessionPipeTest, BehindACommitThatFailsNothingIsAnswered) {
  fs_ = &faulty_;
  begin();
  open();
  pipe_->push(storage::StreamInfo{1, 11, "thread", 1});
  std::optional<Result<std::string>> committed;
  pipe_->push(order(committed));
  ASSERT_TRUE(loop_.run_until([&] { return committed.has_value(); }));
  hold();
  faulty_.set_plan({.fail_at = faulty_.changes(), .lasting = true});
  pipe_->push(storage::StreamEnd{.stream_id = 1, .thread_name = {}});
  pipe_->push(PositionsWanted{5});
  let_go();
  ASSERT_TRUE(loop_.run_until([&] { return failed_.has_value() && sealed_.has_value(); }));
  core_->writers.stop();
  loop_.run();
  EXPECT_EQ(failed_->code, Code::kIo);
  EXPECT_EQ(sealed_->state, storage::SessionState::kFailed);
  EXPECT_FALSE(stored_[1].closed);
  EXPECT_EQ(answered_, 0u);
}

// A place where nothing was recorded is removed; there is nothing to wait for.
TEST_F(SessionPipeTest, WhatCannotBeRecoveredIsFailedAtOnce) {
  begin();
  const std::string directory = root_ + "/session_20260101_000000/pid_1";
  std::filesystem::create_directories(directory);
  pipe_->push(SessionResume{directory});
  ASSERT_TRUE(loop_.run_until([&] { return sealed_.has_value(); }));
  EXPECT_EQ(sealed_->state, storage::SessionState::kFailed);
  EXPECT_THAT(sealed_->reason, HasSubstr("nothing was recorded there"));
  EXPECT_FALSE(sealed_->held_up);
  EXPECT_FALSE(opened_.has_value());
}

}  // namespace
}  // namespace collect::ingest
