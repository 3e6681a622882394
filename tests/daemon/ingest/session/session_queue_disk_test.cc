// A session's queue and its disk: what is counted, what is tried again, and how it ends.
#include <gmock/gmock.h>

#include <filesystem>

#include "tests/daemon/ingest/session/session_queue_fixture.h"

namespace collect::ingest {
namespace {

using principal::Resource;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(SessionQueueTest, StallsBehindACommitThatFailsAreNotAnswered) {
  fs_ = &faulty_;
  begin();
  open();
  ArrivedStalls stalls;
  stalls.next_number = 9;
  push(stalls);
  ASSERT_TRUE(loop_.run_until([&] { return stalls_next_ == 9; }));
  settle();
  hold();
  faulty_.set_plan({.fail_at = faulty_.changes(), .lasting = true});
  stalls.next_number = 12;
  stalls.stalls.push_back({0, storage::make_stall(storage::StallKind::kStopped, 1'000, 2'000)});
  push(stalls);
  push(storage::StreamInfo{1, 11, "thread", 1});
  let_go();
  ASSERT_TRUE(loop_.run_until([&] { return failed_.has_value() && sealed_.has_value(); }));
  core_->stop_threads();
  loop_.run();
  EXPECT_EQ(stalls_next_, 9u);
  EXPECT_EQ(last_.stalls_next, 0u);
}

TEST_F(SessionQueueTest, StallsAreTheirThreadsOwn) {
  begin();
  open();
  push(storage::StreamInfo{1, 11, "one", 1});
  push(storage::StreamInfo{2, 12, "two", 1});
  const auto stall = [](uint64_t first_ns) {
    return storage::make_stall(storage::StallKind::kPageWait, first_ns, first_ns + 10);
  };
  ArrivedStalls arrived;
  arrived.next_number = 5;
  arrived.stalls = {{1, stall(100)}, {1, stall(200)}, {2, stall(300)}, {1, stall(400)}};
  push(arrived);
  arrived.next_number = 4;  // again, after a reconnect
  arrived.stalls.resize(1);
  push(arrived);
  queue_->seal(storage::SessionState::kComplete, "");
  ASSERT_TRUE(loop_.run_until([&] { return sealed_.has_value(); }));
  EXPECT_EQ(stalls_next_, 5u);
  const storage::Manifest manifest = on_disk();
  ASSERT_EQ(manifest.threads.size(), 2u);
  EXPECT_EQ(manifest.threads[0].stalls.count, 3u);
  EXPECT_EQ(manifest.threads[1].stalls.count, 1u);
  EXPECT_EQ(last_.totals.stalls.count, 4u);
}

// What was acknowledged is in the files already: the next collector continues from there.
TEST_F(SessionQueueTest, StopsWithAFailingDisk) {
  fs_ = &faulty_;
  begin();
  open();
  settle();
  hold();
  faulty_.set_plan({.fail_at = faulty_.changes(), .lasting = true});
  queue_->suspend("the collector stops");
  let_go();
  ASSERT_TRUE(loop_.run_until([this] { return suspended_ == 1; }));
  EXPECT_FALSE(failed_.has_value());
  EXPECT_FALSE(sealed_.has_value());
  EXPECT_EQ(account_->used(Resource::kDescriptors), 0u);
}

// Of descriptors and memory there is soon more.
TEST_F(SessionQueueTest, RetriesAfterTransientExhaustion) {
  fs_ = &faulty_;
  begin();
  open();
  settle();
  hold();
  faulty_.set_plan({.fail_at = faulty_.changes(), .code = Code::kExhausted});
  const uint64_t held = core_->counters.writes_held;
  push(storage::StreamInfo{1, 11, "thread", 1});
  queue_->note("behind it");
  let_go();
  ASSERT_TRUE(loop_.run_until([&] { return last_.totals.threads == 1; }));
  EXPECT_EQ(core_->counters.writes_held, held + 1);
  EXPECT_FALSE(failed_.has_value());
  faulty_.set_plan({.fail_at = faulty_.changes(), .code = Code::kExhausted});
  queue_->suspend("the collector stops");
  ASSERT_TRUE(loop_.run_until([this] { return suspended_ == 1; }));
  EXPECT_FALSE(failed_.has_value());
  const storage::Manifest manifest = on_disk();
  ASSERT_EQ(manifest.notes.size(), 2u);
  EXPECT_EQ(manifest.notes[0].what, "behind it");
  EXPECT_EQ(manifest.notes[1].what, "the collector stops");
}

// Perhaps it is one of those that are complete: that is known when they are listed.
TEST_F(SessionQueueTest, WhereOldSessionsAreNotListedYetItWaits) {
  begin();
  core_->completed.expect(0);
  storage::SessionIdentity identity;
  identity.process_id = {7};
  identity.recording = 1;
  open_as(*queue_, identity);
  want_positions(3);
  ASSERT_TRUE(loop_.run_until([this] { return core_->counters.writes_held >= 2; }));
  loop_.run();
  EXPECT_FALSE(opened_.has_value());
  EXPECT_FALSE(failed_.has_value());
  EXPECT_EQ(answered_, 0u) << "nothing is known of it yet";
  core_->completed.looked_at(0);
  ASSERT_TRUE(loop_.run_until([this] { return opened_.has_value() && answered_ == 1; }));
}

TEST_F(SessionQueueTest, CountsStoredEventsOnce) {
  begin();
  open();
  EXPECT_FALSE(queue_->has_too_many_files());
  push(storage::StreamInfo{1, 11, "thread", 1});
  const auto events = fakes::index_events(0, 3);
  push_pages({Page{fakes::index_page_header(1, 0, 1), Bytes(events).first(32), {}},
              Page{fakes::index_page_header(1, 2, 1), Bytes(events).last(32), {}}});
  want_positions(7);
  ASSERT_TRUE(loop_.run_until([&] { return answered_ == 1; }));
  const IngestCounters& counters = core_->counters;
  EXPECT_EQ(counters.events_stored, 2u);
  EXPECT_EQ(counters.events_lost, 1u);
  EXPECT_EQ(counters.bytes_stored, 64u);
  EXPECT_EQ(counters.pages_stored, 2u);
  EXPECT_EQ(counters.pages_decoded, 0u);
  EXPECT_EQ(counters.detail_records_stored, 0u);
  EXPECT_EQ(stored_[1].index_next, 3u);
  EXPECT_EQ(stored_[1].detail_next, 0u);
  EXPECT_EQ(stored_[1].stream_id, 1u);
  ASSERT_EQ(last_.positions.size(), 1u);
  EXPECT_EQ(last_.positions[0].first, 7u);
  ASSERT_EQ(last_.positions[0].second.size(), 1u);
  EXPECT_EQ(last_.positions[0].second[0].index_next, 3u);
  // The next owner knows all that, and counts it no second time.
  queue_->suspend("the collector stops");
  ASSERT_TRUE(loop_.run_until([&] { return suspended_ == 1; }));
  const auto first = opened_;
  opened_.reset();
  queue_ =
      std::make_shared<SessionQueue>(core_->queue_dependencies, loop_.io().get_executor(), account_,
                                     [this](SessionReport report) { take(std::move(report)); });
  resume(first->directory);
  want_positions(8);
  ASSERT_TRUE(loop_.run_until([&] { return opened_.has_value() && answered_ == 2; }));
  EXPECT_EQ(opened_->name, first->name);
  EXPECT_EQ(opened_->directory, first->directory);
  EXPECT_EQ(last_.totals.events, 2u);
  EXPECT_EQ(last_.totals.lost_events, 1u);
  EXPECT_EQ(counters.events_stored, 2u);
  EXPECT_EQ(counters.events_lost, 1u);
  EXPECT_EQ(counters.bytes_stored, 64u);
  ASSERT_EQ(last_.positions.size(), 1u);
  EXPECT_EQ(last_.positions[0].second.at(0).index_next, 3u);
}

TEST_F(SessionQueueTest, ReportsGoWhereTheyAreWanted) {
  begin();
  open();
  int others = 0;
  queue_->report_to([&](const SessionReport&) { ++others; });
  const auto before = answered_;
  want_positions(1);
  ASSERT_TRUE(loop_.run_until([&] { return others == 1; }));
  queue_->report_to(nullptr);
  std::optional<Result<std::string>> committed;
  ask(committed);
  ASSERT_TRUE(loop_.run_until([&] { return committed.has_value(); }));
  loop_.run();
  EXPECT_EQ(answered_, before);
  EXPECT_EQ(others, 1);
}

// A principal whose manifests came too fast is not acknowledged before they may be written.
TEST_F(SessionQueueTest, WaitsUntilTheNextManifestMayBeWritten) {
  begin();
  open();
  settle();
  hold();
  constexpr uint64_t kMuch = uint64_t{1} << 40;
  account_->count_manifest(kMuch);
  push(storage::StreamInfo{1, 11, "thread", 1});
  const auto events = fakes::index_events(0, 1);
  push_page(0, events);
  let_go();
  // A task behind it on the same thread: its own round is over then.
  for (int round = 0; round < 3; ++round) {
    std::promise<void> passed;
    const auto next = std::make_shared<SessionQueue>(core_->queue_dependencies,
                                                     loop_.io().get_executor(), account_, nullptr);
    open_as(*next, {});
    next->command(
        [&](storage::Session&) -> Result<std::string> {
          passed.set_value();
          return std::string();
        },
        [](const Result<std::string>&) {});
    passed.get_future().wait();
  }
  loop_.run();
  EXPECT_EQ(core_->counters.events_stored, 0u);
  EXPECT_EQ(stored_[1].index_next, 0u);
  account_->count_data(4 * kMuch);
  ASSERT_TRUE(loop_.run_until([&] { return stored_[1].index_next == 1; }));
  EXPECT_EQ(core_->counters.events_stored, 1u);
  EXPECT_FALSE(failed_.has_value());
}

// ---- what its disk has to have free

TEST_F(SessionQueueTest, BeginsOnlyWithRoomForItAndAMegabyte) {
  fs_ = &faulty_;
  options_.storage.keep_free_bytes = 1'000;
  options_.storage.keep_free_files = 10;
  begin();
  const auto begins = [&](uint64_t bytes, uint64_t files) {
    opened_.reset();
    failed_.reset();
    faulty_.free_bytes = bytes;
    faulty_.free_files = files;
    queue_ = std::make_shared<SessionQueue>(
        core_->queue_dependencies, loop_.io().get_executor(), account_,
        [this](SessionReport report) { take(std::move(report)); });
    open_as(*queue_, {});
    EXPECT_TRUE(loop_.run_until([this] { return opened_.has_value() || failed_.has_value(); }));
    EXPECT_TRUE(!failed_ || failed_->code == Code::kNoSpace);
    return opened_.has_value();
  };
  constexpr uint64_t kBytes = 1'000 + (1u << 20);
  constexpr uint64_t kFiles = 10 + storage::kFilesPerSession;
  EXPECT_TRUE(begins(kBytes + (1u << 20), kFiles));
  EXPECT_FALSE(begins(kBytes - 1, kFiles));
  EXPECT_FALSE(begins(kBytes + (1u << 20), kFiles - 1));
}

// ---- sealed

TEST_F(SessionQueueTest, OnlyWhatIsCompleteIsRemembered) {
  begin();
  const auto sealed_as = [&](uint32_t recording, storage::SessionState state,
                             bool has_open_stream) {
    opened_.reset();
    sealed_.reset();
    queue_ = std::make_shared<SessionQueue>(
        core_->queue_dependencies, loop_.io().get_executor(), account_,
        [this](SessionReport report) { take(std::move(report)); });
    storage::SessionIdentity identity;
    identity.process_id = {7};
    identity.recording = recording;
    identity.pid = 4711;
    open_as(*queue_, identity);
    if (has_open_stream) push(storage::StreamInfo{1, 11, "thread", 1});
    queue_->seal(state, "why");
    EXPECT_TRUE(loop_.run_until([this] { return sealed_.has_value(); }));
    EXPECT_EQ(sealed_->reason, "why");
    EXPECT_EQ(sealed_->symbols, storage::SymbolsState::kNone);
    EXPECT_EQ(account_->used(Resource::kDescriptors), 0u);
    return sealed_->state;
  };
  EXPECT_EQ(sealed_as(1, storage::SessionState::kComplete, false),
            storage::SessionState::kComplete);
  const auto place = core_->completed.find({7}, 1, 4711).session_path;
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->pid, 4711u);
  EXPECT_EQ(place->name, opened_->name);
  EXPECT_EQ(place->directory, opened_->directory);
  EXPECT_EQ(sealed_as(2, storage::SessionState::kRecovered, false),
            storage::SessionState::kRecovered);
  EXPECT_FALSE(core_->completed.find({7}, 2, 4711).session_path);
  // Its agent has said all of it, but the last counts of a thread are not there.
  EXPECT_EQ(sealed_as(3, storage::SessionState::kComplete, true),
            storage::SessionState::kRecovered);
  EXPECT_TRUE(core_->completed.find({7}, 3, 4711).session_path) << "nothing more is to come";
  EXPECT_FALSE(sealed_->health.is_complete());
}

class Namer final : public IngestObserver {
 public:
  void agent_changed(const AgentSnapshot&) override {}
  void agent_removed(AgentId) override {}
  void session_changed(const SessionSnapshot&) override {}
  bool to_be_named(const std::string& name, const std::string& directory,
                   std::vector<uint64_t> functions) override {
    asked.push_back(name + " in " + directory);
    count = functions.size();
    return names;
  }
  bool names = true;
  std::vector<std::string> asked;  // of one session after the other
  size_t count = 0;
};

TEST_F(SessionQueueTest, FunctionsThatOccurAreToBeNamed) {
  Namer namer;
  observer_ = &namer;
  options_.storage.symbolize = true;
  begin();
  const auto events = fakes::index_events(0, 3);  // of two functions
  const auto symbols_of = [&](uint64_t count) {
    opened_.reset();
    sealed_.reset();
    namer.asked.clear();
    queue_ = std::make_shared<SessionQueue>(
        core_->queue_dependencies, loop_.io().get_executor(), account_,
        [this](SessionReport report) { take(std::move(report)); });
    open_as(*queue_, {});
    push(storage::StreamInfo{1, 11, "thread", 1});
    for (uint64_t at = 0; at < count; ++at) push_page(at, Bytes(events).subspan(at * 32, 32));
    queue_->seal(storage::SessionState::kRecovered, "cut");
    EXPECT_TRUE(loop_.run_until([this] { return sealed_.has_value(); }));
    return sealed_->symbols;
  };
  EXPECT_EQ(symbols_of(3), storage::SymbolsState::kPending);
  EXPECT_THAT(namer.asked, ElementsAre(opened_->name + " in " + opened_->directory));
  EXPECT_EQ(namer.count, 2u);
  EXPECT_EQ(symbols_of(0), storage::SymbolsState::kNone);
  EXPECT_THAT(namer.asked, IsEmpty()) << "there is nothing to name";
  namer.names = false;
  EXPECT_EQ(symbols_of(3), storage::SymbolsState::kNone) << "no one is going to";
  EXPECT_EQ(namer.asked.size(), 1u);
  queue_.reset();
  core_->stop_threads();
}

TEST_F(SessionQueueTest, AsksForNoNamesIfNoneAreWanted) {
  Namer namer;
  observer_ = &namer;
  begin();
  open();
  const auto events = fakes::index_events(0, 1);
  push(storage::StreamInfo{1, 11, "thread", 1});
  push_page(0, events);
  queue_->seal(storage::SessionState::kRecovered, "cut");
  ASSERT_TRUE(loop_.run_until([this] { return sealed_.has_value(); }));
  EXPECT_THAT(namer.asked, IsEmpty());
  queue_.reset();
  core_->stop_threads();
}

TEST_F(SessionQueueTest, SealThatFailsSaysWhy) {
  fs_ = &faulty_;
  begin();
  open();
  settle();
  hold();
  queue_->seal(storage::SessionState::kComplete, "exit");
  faulty_.set_plan({.fail_at = faulty_.changes(), .lasting = true});
  let_go();
  ASSERT_TRUE(loop_.run_until([this] { return sealed_.has_value(); }));
  EXPECT_EQ(sealed_->state, storage::SessionState::kFailed);
  EXPECT_THAT(sealed_->reason, testing::StartsWith("exit; sealing failed: "));
  EXPECT_FALSE(sealed_->deferred) << "a broken disk does not get better";
  EXPECT_FALSE(core_->completed.find({7}, 1, 0).session_path);
  EXPECT_EQ(account_->used(Resource::kDescriptors), 0u);
}

// It is reported once, also if the seal fails for the same reason.
TEST_F(SessionQueueTest, FailureIsNotSaidTwice) {
  fs_ = &faulty_;
  begin();
  open();
  settle();
  hold();
  faulty_.set_plan({.fail_at = faulty_.changes(), .lasting = true});
  push(storage::StreamInfo{1, 11, "thread", 1});
  const auto events = fakes::index_events(0, 1);
  push_page(0, events);
  queue_->seal(storage::SessionState::kComplete, "exit");
  let_go();
  ASSERT_TRUE(loop_.run_until([this] { return sealed_.has_value() && failed_.has_value(); }));
  EXPECT_TRUE(is_storage_fault(failed_->code));
  EXPECT_EQ(sealed_->state, storage::SessionState::kFailed);
  EXPECT_THAT(sealed_->reason, testing::StartsWith("I/O error: " + to_string(*failed_)));
  core_->stop_threads();
}

TEST_F(SessionQueueTest, TellsStorageFaultsFromAgentFaults) {
  for (const Code code : {Code::kNoSpace, Code::kExhausted, Code::kIo, Code::kPermission,
                          Code::kAlreadyExists, Code::kNotFound, Code::kUnavailable}) {
    EXPECT_TRUE(is_storage_fault(code)) << static_cast<int>(code);
  }
  for (const Code code : {Code::kDamaged, Code::kLimit, Code::kInvalidArgument}) {
    EXPECT_FALSE(is_storage_fault(code)) << static_cast<int>(code);
  }
}

// A session that can't go on is finished as it is.
TEST_F(SessionQueueTest, RecoversSessionsThatCannotGoOn) {
  begin();
  open();
  push(storage::StreamInfo{1, 11, "thread", 1});
  const auto events = fakes::index_events(0, 1);
  push_page(0, events);
  queue_->seal(storage::SessionState::kRecovered, "cut");
  ASSERT_TRUE(loop_.run_until([this] { return sealed_.has_value(); }));
  const auto first = opened_;
  opened_.reset();
  sealed_.reset();
  queue_ =
      std::make_shared<SessionQueue>(core_->queue_dependencies, loop_.io().get_executor(), account_,
                                     [this](SessionReport report) { take(std::move(report)); });
  resume(first->directory);
  queue_->note("too late");
  ASSERT_TRUE(loop_.run_until([this] { return sealed_.has_value(); }));
  EXPECT_FALSE(opened_.has_value());
  EXPECT_FALSE(failed_.has_value());
  EXPECT_EQ(sealed_->state, storage::SessionState::kRecovered);
  EXPECT_EQ(sealed_->health.state, storage::SessionState::kRecovered);
  EXPECT_EQ(last_.totals.events, 1u);
}

}  // namespace
}  // namespace collect::ingest
