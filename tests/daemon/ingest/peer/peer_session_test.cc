// A process's sessions, by hand: every frame of a recording, what it is charged, what is looked for
// in it, and a recording that is complete already.
#include <gmock/gmock.h>

#include <cstring>
#include <filesystem>
#include <future>

#include "formats/atf/layout.h"
#include "storage/manifest/manifest.h"
#include "tests/daemon/ingest/peer/peer_fixture.h"

namespace collect::ingest {
namespace {

using principal::Resource;
using testing::HasSubstr;
using testing::IsEmpty;
using wire::FrameType;

class PeerSessionTest : public PeerTest {
 protected:
  wire::RecordingStart start_of(uint32_t recording) const {
    wire::RecordingStart start;
    start.set_recording(recording);
    start.set_atf_version(2);
    start.set_start_ns(1'000'000);
    return start;
  }
  // A recording with one frame of each type at least, and the start of the next one.
  std::vector<uint8_t> every_frame() const;
  std::string refusal() {
    const auto refuse = next(data_, FrameType::kRefuse);
    return refuse ? refuse->parsed<wire::Refuse>().reason() : "";
  }
};

// ---- frames

std::vector<uint8_t> PeerSessionTest::every_frame() const {
  std::vector<uint8_t> bytes;
  const auto add = [&](FrameType type, const google::protobuf::MessageLite& message) {
    const auto frame = fakes::frame_bytes(type, message);
    bytes.insert(bytes.end(), frame.begin(), frame.end());
  };
  add(static_cast<FrameType>(24), wire::Heartbeat());  // of a later version
  add(FrameType::kRecordingStart, start_of(1));
  add(FrameType::kRecordingStart, start_of(1));
  wire::Modules modules;
  modules.add_modules()->set_path("/bin/a");
  modules.add_modules()->set_path("/bin/b");
  modules.mutable_modules(1)->set_module_id(1);
  add(FrameType::kModules, modules);
  wire::StreamOpen open;
  open.set_recording(1);
  open.set_stream_id(7);
  open.set_thread_id(70);
  open.set_thread_name("seven");
  add(FrameType::kStreamOpen, open);
  add(FrameType::kStreamOpen, open);
  wire::DetailState detail;
  detail.set_mode(wire::DETAIL_ARMED);
  detail.set_at_ns(2'000'000);
  detail.set_reason("wanted");
  add(FrameType::kDetailState, detail);
  wire::Stalls stalls;
  stalls.set_first_number(1);
  wire::Stall& stall = *stalls.add_stalls();
  stall.set_stream_id(7);
  stall.set_kind(wire::Stall::STOPPED);
  stall.set_first_ns(3'000'000);
  stall.set_last_ns(4'000'000);
  add(FrameType::kStalls, stalls);
  const auto page =
      fakes::page_frame_bytes(fakes::index_page_header(7, 0, 10), fakes::index_events(0, 10));
  bytes.insert(bytes.end(), page.begin(), page.end());
  wire::StreamClose close;
  close.set_stream_id(7);
  close.set_index_count(10);
  add(FrameType::kStreamClose, close);
  wire::RecordingEnd end;
  end.set_recording(1);
  end.set_reason("exit");
  end.mutable_process_end()->set_how(wire::ProcessEnd::EXITED);
  end.mutable_process_end()->set_exit_code(3);
  add(FrameType::kRecordingEnd, end);
  add(FrameType::kRecordingStart, start_of(2));
  return bytes;
}

// Behind each of them the next one is read.
TEST_F(PeerSessionTest, EveryFrameOfARecordingIsTaken) {
  begin();
  connect();
  ASSERT_TRUE(data_.send_bytes(every_frame()));
  ASSERT_TRUE(when([](const auto& one) { return one.recording == 2; }));
  ASSERT_TRUE(when([](const auto& one) { return one.state == SessionState::kComplete; }));
  EXPECT_TRUE(peer_->connected());
  const auto first = reported_.session([](const auto& one) { return one.recording == 1; });
  EXPECT_EQ(first->status, "exit");
  EXPECT_EQ(first->totals.events, 10u);
  EXPECT_EQ(first->totals.threads, 1u);
  EXPECT_EQ(first->detail, DetailMode::kArmed);
  EXPECT_EQ(first->process_end, (storage::ProcessEnd{storage::ProcessEnd::How::kExited, 3}));
  EXPECT_EQ(first->agent, shown().id);
  EXPECT_EQ(first->process_name, "fake");
  EXPECT_EQ(first->pid, 4711u);
  EXPECT_EQ(first->device_id, hello(wire::CHANNEL_DATA).device_id());
  EXPECT_EQ(first->route, "");
  const auto manifest = storage::read_manifest(posix_, first->directory);
  ASSERT_TRUE(manifest.ok());
  ASSERT_EQ(manifest->modules.size(), 2u);
  EXPECT_EQ(manifest->modules[1].path, "/bin/b");
  ASSERT_EQ(manifest->threads.size(), 1u);
  EXPECT_EQ(manifest->threads[0].name, "seven");
  EXPECT_EQ(manifest->threads[0].stalls.count, 1u);
  ASSERT_EQ(manifest->detail_windows.size(), 1u);
  EXPECT_EQ(manifest->detail_windows[0].mode, "armed");
  EXPECT_EQ(manifest->detail_windows[0].reason, "wanted");
  EXPECT_EQ(manifest->process_end, first->process_end);
  EXPECT_EQ(ended(), std::vector<uint32_t>{1});
  EXPECT_EQ(core_->live_sessions, 1u);
}

TEST_F(PeerSessionTest, BehindItsEndNothingBelongsToARecording) {
  begin();
  connect();
  start_recording();
  end_recording();
  ASSERT_TRUE(session_in(SessionState::kComplete).has_value());
  say(data_, FrameType::kModules, wire::Modules());
  EXPECT_EQ(refusal(), "modules before a recording began");
  EXPECT_FALSE(peer_->connected());
}

// A new data channel begins again, also where control has not come.
TEST_F(PeerSessionTest, AnotherDataChannelExplainsEverythingAgain) {
  begin();
  data_ = adopt(wire::CHANNEL_DATA);
  start_recording();
  open_stream(1);
  EXPECT_EQ(peer_->threads().size(), 1u);
  data_ = adopt(wire::CHANNEL_DATA);
  EXPECT_THAT(peer_->threads(), IsEmpty());
  say(data_, FrameType::kModules, wire::Modules());
  EXPECT_EQ(refusal(), "modules before a recording began");
}

// The checks of a page, and that those before it are kept.
TEST_F(PeerSessionTest, PagesUpToTheWrongOneAreStored) {
  begin();
  connect();
  start_recording();
  open_stream(1);
  open_stream(2);
  send_events(1, 0, 10);
  send_events(1, 10, 10);
  send_events(2, 5, 1);
  send_events(1, 30, 10);
  close_stream(2, 6);
  const auto good =
      fakes::page_frame_bytes(fakes::index_page_header(1, 40, 5), fakes::index_events(40, 5));
  auto both = good;
  const auto wrong =
      fakes::page_frame_bytes(fakes::index_page_header(1, 44, 5), fakes::index_events(44, 5));
  both.insert(both.end(), wrong.begin(), wrong.end());
  ASSERT_TRUE(data_.send_bytes(both));
  run();
  EXPECT_EQ(refusal(), "page of stream 1 jumps back from record 45 to 44");
  EXPECT_TRUE(shows([](const auto& one) { return one.totals.events == 36; }));
}

TEST_F(PeerSessionTest, StreamClosesWithWhatItSent) {
  begin();
  connect();
  start_recording();
  open_stream(1);
  send_events(1, 0, 10);
  close_stream(1, 10);
  EXPECT_TRUE(peer_->connected());
  open_stream(1);  // again
  send_events(1, 10, 10);
  close_stream(1, 19);
  EXPECT_EQ(refusal(), "stream 1 closes with fewer records than it sent");
}

TEST_F(PeerSessionTest, SoManyThreadsAndRecordings) {
  options_.threads_per_agent = 2;
  options_.sessions_per_agent = 2;
  begin();
  connect();
  start_recording();
  ASSERT_TRUE(session_in(SessionState::kActive).has_value());
  open_stream(1);
  open_stream(2);
  open_stream(2);
  EXPECT_TRUE(peer_->connected());
  close_stream(1, 0);
  open_stream(3);
  EXPECT_TRUE(peer_->connected()) << "one is over";
  open_stream(4);
  auto refuse = next(data_, FrameType::kRefuse);
  ASSERT_TRUE(refuse.has_value());
  EXPECT_EQ(refuse->parsed<wire::Refuse>().code(), wire::REFUSE_LIMIT);
  EXPECT_FALSE(refuse->parsed<wire::Refuse>().retry());
  EXPECT_EQ(refuse->parsed<wire::Refuse>().reason(),
            "more than 2 threads at once (threads_per_agent)");
  EXPECT_FALSE(peer_->connected());
  said_recording_ = 1;
  connect();
  start_recording(2);
  ASSERT_TRUE(when([](const auto& one) { return one.recording == 2; }));
  start_recording(3);
  refuse = next(data_, FrameType::kRefuse);
  ASSERT_TRUE(refuse.has_value());
  EXPECT_EQ(refuse->parsed<wire::Refuse>().code(), wire::REFUSE_LIMIT);
  EXPECT_FALSE(refuse->parsed<wire::Refuse>().retry());
  EXPECT_EQ(refuse->parsed<wire::Refuse>().reason(),
            "more than 2 recordings of one process (sessions_per_agent)");
  ASSERT_TRUE(loop_.run_until([&] { return core_->live_sessions == 0; }));
  EXPECT_EQ(reported_.session_count(), 2u);
}

// ---- what it is charged

TEST_F(PeerSessionTest, SessionIsChargedForWhatItTakes) {
  begin();
  connect();
  EXPECT_EQ(used(Resource::kSessions), 0u);
  start_recording();
  ASSERT_TRUE(session_in(SessionState::kActive).has_value());
  const auto expect_used = [&](uint64_t streams, uint64_t more_memory = 0) {
    EXPECT_EQ(used(Resource::kSessions), 1u);
    EXPECT_EQ(used(Resource::kMemory), kSessionMemory + streams * kStreamMemory + more_memory);
    EXPECT_EQ(used(Resource::kInodes),
              storage::kFilesPerSession + streams * storage::kFilesPerThread);
  };
  expect_used(0);
  open_stream(1);
  open_stream(2);
  open_stream(2);
  expect_used(2);
  wire::Modules modules;
  modules.add_modules()->set_path("/bin/fifteen.so");
  modules.mutable_modules(0)->set_build_id("four");
  say(data_, FrameType::kModules, modules);
  // Twice: for names of functions, and for the manifest.
  const uint64_t module_bytes = 2 * (sizeof(storage::ModuleInfo) + 15 + 4);
  expect_used(2, module_bytes);
  // Streams that are opened again on a new connection are charged already.
  ASSERT_TRUE(when([](const auto& one) { return one.state == SessionState::kActive; }));
  said_recording_ = 1;
  connect();
  start_recording();
  open_stream(1);
  open_stream(2);
  expect_used(2, module_bytes);
  open_stream(3);
  expect_used(3, module_bytes);
  // Others than before are known when storage has made them.
  connect();
  start_recording();
  for (const uint32_t stream : {4, 5}) {
    open_stream(stream);
    send_events(stream, 0, 1);
  }
  EXPECT_TRUE(loop_.run_until([&] {
    return used(Resource::kMemory) == kSessionMemory + 5 * kStreamMemory + module_bytes;
  }));
  expect_used(5, module_bytes);
  end_recording();
  ASSERT_TRUE(loop_.run_until([&] { return core_->live_sessions == 0; }));
  run();
  EXPECT_EQ(used(Resource::kSessions), 0u);
  EXPECT_EQ(used(Resource::kMemory), 0u);
  EXPECT_EQ(used(Resource::kInodes), 0u);
}

TEST_F(PeerSessionTest, RefusesRecordingsForNowWithoutMemory) {
  options_.accounted_memory = kLeastMemory;
  begin();
  principal::Lease others(core_->budget.account(principal::Principal::of_uid(1)),
                          Resource::kMemory);
  const auto expect_refused = [&](const std::string& resource) {
    const auto refuse = next(data_, FrameType::kRefuse);
    ASSERT_TRUE(refuse.has_value());
    EXPECT_EQ(refuse->parsed<wire::Refuse>().code(), wire::REFUSE_LIMIT);
    EXPECT_TRUE(refuse->parsed<wire::Refuse>().retry());
    EXPECT_THAT(refuse->parsed<wire::Refuse>().reason(), HasSubstr(resource));
    EXPECT_FALSE(peer_->connected());
  };
  others.set(kLeastMemory);
  connect();
  start_recording();
  expect_refused("max_memory_bytes");
  EXPECT_EQ(core_->live_sessions, 0u);
  EXPECT_EQ(used(Resource::kSessions), 0u);
  EXPECT_EQ(reported_.session_count(), 0u);
  others.set(0);
  connect();
  start_recording();
  ASSERT_TRUE(session_in(SessionState::kActive).has_value());
  said_recording_ = 1;
  others.set(kLeastMemory);
  open_stream(1);
  expect_refused("max_memory_bytes");
  EXPECT_EQ(core_->live_sessions, 1u) << "the session waits";
  connect();
  start_recording();
  wire::Modules modules;
  modules.add_modules()->set_path("/bin/a");
  say(data_, FrameType::kModules, modules);
  expect_refused("max_memory_bytes");
  others.set(0);
  connect();
  start_recording();
  say(data_, FrameType::kModules, modules);
  open_stream(1);
  send_events(1, 0, 10);
  close_stream(1, 10);
  end_recording();
  ASSERT_TRUE(session_in(SessionState::kComplete).has_value());
}

// Others need the files that it keeps open: a commit closes some.
TEST_F(PeerSessionTest, FilesThatOthersNeedAreClosed) {
  options_.descriptors = 400;
  options_.heartbeat = kMaxHeartbeat;
  begin();
  connect();
  start_recording();
  for (uint32_t stream = 1; stream <= 50; ++stream) {
    open_stream(stream);
    send_events(stream, 0, 1);
  }
  ASSERT_TRUE(loop_.run_until([this] { return core_->counters.events_stored == 50; }));
  const auto account = core_->budget.account(principal::Principal{});
  ASSERT_TRUE(loop_.run_until([&] { return account->used(Resource::kDescriptors) >= 50; }));
  sweep(milliseconds{0});
  const uint64_t before = account->used(Resource::kDescriptors);
  EXPECT_GE(before, 50u) << "as long as no one needs them they stay open";
  principal::Lease others(core_->budget.account(principal::Principal::of_uid(1)),
                          Resource::kDescriptors);
  others.set(395);
  sweep(milliseconds{0});
  EXPECT_TRUE(loop_.run_until([&] { return account->used(Resource::kDescriptors) < 50; }));
}

// ---- what is looked for

TEST_F(PeerSessionTest, CallsAndCountersAreLookedFor) {
  begin();
  connect();
  start_recording();
  open_stream(1);
  ASSERT_TRUE(session_in(SessionState::kActive).has_value());
  constexpr uint64_t kSameFunction = 32;  // after so many events the fakes call it again
  const auto events = fakes::index_events(0, 1);
  WatchedEvent call;
  call.functions.resize(1);
  std::memcpy(call.functions.data(), events.data() + offsetof(atf::IndexEventV2, function_id), 8);
  WatchedEvent counter;
  counter.kind = WatchedEvent::Kind::kCounter;
  counter.counter = "depth";
  counter.above = 10;
  std::mutex mutex;
  std::vector<size_t> seen;
  const auto on_seen = [&](const SeenEvent& event) {
    const std::lock_guard lock(mutex);
    seen.push_back(event.number);
  };
  const auto seen_now = [&] {
    const std::lock_guard lock(mutex);
    return seen;
  };
  const auto events_stored = [&](uint64_t count) {
    return loop_.run_until([&] { return core_->counters.events_stored == count; });
  };
  std::optional<Result<std::string>> watching;
  const auto watch = [&](std::vector<WatchedEvent> wanted) {
    peer_->watch_events({std::move(wanted), on_seen},
                        [&](Result<std::string> name) { watching.emplace(std::move(name)); });
  };
  const auto count = [&](int64_t value) {
    wire::Counters counters;
    counters.add_counters()->set_name("depth");
    counters.mutable_counters(0)->set_value(value);
    counters.mutable_counters(0)->set_highest(value);
    say(control_, FrameType::kCounters, counters);
  };
  watch({counter, call});
  ASSERT_TRUE(watching.has_value());
  ASSERT_TRUE(watching->ok());
  EXPECT_EQ(**watching, session_in(SessionState::kActive)->name);
  send_events(1, 0, 1);
  ASSERT_TRUE(events_stored(1));
  EXPECT_EQ(seen_now(), std::vector<size_t>{1});
  count(11);
  EXPECT_EQ(seen_now(), (std::vector<size_t>{1, 0}));
  watch({call});
  count(0);
  count(11);
  send_events(1, 1, 1);
  ASSERT_TRUE(events_stored(2));
  EXPECT_EQ(seen_now().size(), 2u) << "neither a counter nor a return";
  send_events(1, kSameFunction, 1);
  ASSERT_TRUE(events_stored(3));
  EXPECT_EQ(seen_now(), (std::vector<size_t>{1, 0, 0}));
  watch({counter});
  send_events(1, 2 * kSameFunction, 1);
  ASSERT_TRUE(events_stored(4));
  EXPECT_EQ(seen_now().size(), 3u) << "no one looks for calls now";
  // At the next heartbeat they are shown.
  EXPECT_THAT(shown().counters, IsEmpty());
  say(control_, FrameType::kHeartbeat, wire::Heartbeat());
  EXPECT_EQ(shown().counters.at("depth"), 11);
  const size_t before = watching_.agents.size();
  say(control_, FrameType::kHeartbeat, wire::Heartbeat());
  EXPECT_EQ(watching_.agents.size(), before);
}

// ---- a session that stops

TEST_F(PeerSessionTest, ReadsHeldBackEventsAfterAPause) {
  options_.data_threads = 1;
  begin();
  connect();
  start_recording();
  open_stream(1);
  ASSERT_TRUE(session_in(SessionState::kActive).has_value());
  const auto first = fakes::index_events(0, 1);
  WatchedEvent call;
  call.functions.resize(1);
  std::memcpy(call.functions.data(), first.data() + offsetof(atf::IndexEventV2, function_id), 8);
  std::promise<void> held, go_on;
  int seen = 0;
  peer_->watch_events({{call},
                       [&](const SeenEvent&) {
                         if (++seen != 1) return;
                         held.set_value();
                         go_on.get_future().wait();
                       }},
                      [](const Result<std::string>&) {});
  const auto send = [this](uint64_t at, uint32_t count) {
    ASSERT_TRUE(
        data_.send_page(fakes::index_page_header(1, at, count), fakes::index_events(at, count)));
    loop_.run();
  };
  send(0, 1);
  held.get_future().wait();  // the data thread stops
  constexpr uint64_t kEvents = 3'001;
  for (uint64_t at = 1; at < kEvents; at += 100) send(at, 100);
  EXPECT_EQ(core_->counters.events_stored, 0u);
  go_on.set_value();
  EXPECT_TRUE(loop_.run_until([&] { return core_->counters.events_stored == kEvents; }));
}

// ---- repeated

// A former collector sealed it and went before the agent heard of that.
TEST_F(PeerSessionTest, CompleteRecordingIsRepeatedForNothing) {
  begin();
  storage::SessionPath session_path;
  session_path.pid = process_.pid;
  session_path.name = "session_20260101_000000/pid_4711";
  session_path.directory = root_ + "/" + session_path.name;
  std::filesystem::create_directories(session_path.directory);
  core_->completed.expect(session_path.pid);  // that is known when old sessions are listed
  connect();
  std::optional<Result<SessionSnapshot>> stopped;
  start_recording(3);
  peer_->stop_recording([&](auto result) { stopped.emplace(std::move(result)); });
  EXPECT_FALSE(stopped.has_value());
  core_->completed.add(peer_->agent().process_id, 3, session_path);
  core_->completed.looked_at(session_path.pid);
  ASSERT_TRUE(loop_.run_until([&] { return stopped.has_value(); }));
  ASSERT_TRUE(stopped->ok());
  EXPECT_EQ((*stopped)->name, session_path.name);
  EXPECT_EQ(core_->live_sessions, 0u);
  EXPECT_EQ(used(Resource::kSessions), 0u);
  EXPECT_EQ(shown().session, session_path.name);
  EXPECT_EQ(ended(), std::vector<uint32_t>{3});
  EXPECT_EQ(reported_.session_count(), 0u);
  open_stream(1, 3);
  send_events(1, 0, 10);
  end_recording(3);
  EXPECT_TRUE(peer_->connected()) << "what it repeats is dropped";
  EXPECT_EQ(ended(), std::vector<uint32_t>{3}) << "and it is reported again";
  start_recording(2);
  EXPECT_EQ(ended(), std::vector<uint32_t>{2}) << "what was before is over too";
  EXPECT_EQ(core_->counters.events_stored, 0u);
  start_recording(4);
  ASSERT_TRUE(session_in(SessionState::kActive).has_value());
}

// While it is sealed nothing is said of it: that is said when it is.
TEST_F(PeerSessionTest, RecordingThatIsBeingSealedIsNotOverYet) {
  begin();
  connect();
  start_recording();
  ASSERT_TRUE(session_in(SessionState::kActive).has_value());
  std::promise<void> go_on;
  core_->seal_threads.add({}, [&] { go_on.get_future().wait(); });
  end_recording();
  EXPECT_EQ(shown().state, AgentState::kConnected);
  start_recording();
  run();
  EXPECT_THAT(ended(), IsEmpty());
  go_on.set_value();
  ASSERT_TRUE(session_in(SessionState::kComplete).has_value());
  EXPECT_EQ(ended(), std::vector<uint32_t>{1});
  EXPECT_EQ(reported_.session_count(), 1u);
}

// Not at once where it was shown a moment ago; then with the next report.
TEST_F(PeerSessionTest, ShowsLaterEventsWithTheNextReport) {
  begin();
  connect();
  start_recording();
  open_stream(1);
  ASSERT_TRUE(session_in(SessionState::kActive).has_value());
  const auto shown_at = std::chrono::steady_clock::now();
  EXPECT_TRUE(loop_.run_until(
      [&] { return std::chrono::steady_clock::now() > shown_at + kProgressInterval; }));
  send_events(1, 0, 10);
  EXPECT_TRUE(when([](const auto& one) { return one.totals.events == 10; }));
}

TEST_F(PeerSessionTest, DoesNotShowUnchangedSessionsAgain) {
  options_.heartbeat = kMaxHeartbeat;
  begin();
  connect();
  start_recording();
  ASSERT_TRUE(session_in(SessionState::kActive).has_value());
  open_stream(1);
  send_events(1, 0, 10);
  const auto later = std::chrono::steady_clock::now() + 2 * kProgressInterval;
  EXPECT_TRUE(loop_.run_until([&] {
    peer_->sweep(later, true);
    return reported_.session([](const auto&) { return true; })->totals.events == 10;
  }));
  const auto shown = [this] {
    size_t count = 0;
    reported_.was_shown([&](const auto&) { return ++count, false; });
    return count;
  };
  const size_t before = shown();
  EXPECT_TRUE(peer_->sweep(later + kProgressInterval, true));
  EXPECT_EQ(shown(), before);
}

// The agent of a session that is being sealed may record into the next one already.
TEST_F(PeerSessionTest, AgentIsShownWithItsNewestSession) {
  begin();
  connect();
  start_recording(1);
  start_recording(2);
  ASSERT_TRUE(when([](const auto& one) { return one.recording == 2; }));
  ASSERT_TRUE(when([](const auto& one) { return one.state == SessionState::kRecovered; }));
  const auto second = reported_.session([](const auto& one) { return one.recording == 2; });
  EXPECT_EQ(shown().session, second->name);
  EXPECT_EQ(shown().state, AgentState::kRecording);
  open_stream(1, 2);
  send_events(1, 0, 10);
  close_stream(1, 10);
  end_recording(2);
  EXPECT_TRUE(when([](const auto& one) {
    return one.recording == 2 && one.state == SessionState::kComplete && one.totals.events == 10;
  })) << "what had no end does not end the next one";
  // The answer to a start names it.
  std::optional<Result<SessionSnapshot>> started;
  peer_->start_recording([&](auto answer) { started.emplace(std::move(answer)); });
  const auto command = next(control_, FrameType::kCommand);
  ASSERT_TRUE(command.has_value());
  wire::CommandResult result;
  result.set_command_id(command->parsed<wire::Command>().command_id());
  result.set_ok(true);
  result.set_recording(3);
  start_recording(3);
  ASSERT_TRUE(when([](const auto& one) { return one.recording == 3; }));
  say(control_, FrameType::kCommandResult, result);
  ASSERT_TRUE(started.has_value());
  ASSERT_TRUE(started->ok());
  EXPECT_EQ((*started)->recording, 3u);
  peer_->start_recording([&](auto answer) { started.emplace(std::move(answer)); });
  EXPECT_EQ(started->code(), Code::kAlreadyExists);
  EXPECT_THAT(started->error().message, HasSubstr("records already, into session_"));
}

}  // namespace
}  // namespace collect::ingest
