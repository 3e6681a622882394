// Recordings from their start to their files, with and without breaks between.
#include <gmock/gmock.h>

#include <filesystem>
#include <future>
#include <thread>

#include "tests/daemon/ingest/ingest_fixture.h"

namespace collect::ingest {
namespace {

using fakes::FakeAgent;
using fakes::FakeProcess;
using fakes::index_events;
using testing::HasSubstr;

TEST_F(IngestTest, OneRecordingBecomesOneCompleteSession) {
  start();
  FakeAgent agent;
  ASSERT_TRUE(agent.connect(address()));
  EXPECT_FALSE(agent.welcome().resumed());
  EXPECT_EQ(agent.welcome().version(), wire::kProtocolVersion);
  EXPECT_EQ(agent.welcome().heartbeat_ms(), 1000u);
  record_all(agent, 1, 7, 10'001);

  const auto session = reported_.session_in(SessionState::kComplete);
  ASSERT_TRUE(session.has_value());
  EXPECT_EQ(session->totals.events, 10'001u);
  EXPECT_EQ(session->totals.lost_events, 0u);
  EXPECT_EQ(session->totals.threads, 1u);
  EXPECT_EQ(session->pid, 4711u);
  EXPECT_EQ(session->process_name, "fake");
  EXPECT_EQ(session->recording, 1u);
  EXPECT_EQ(stored_events(*session, 0, 10'001), index_events(0, 10'001));
  EXPECT_EQ(ingest_->counters().events_stored, 10'001u);
  EXPECT_THAT(manifest(*session), HasSubstr("\"complete\""));
}

TEST_F(IngestTest, SecondRecordingIsItsOwnSession) {
  start();
  FakeAgent agent;
  ASSERT_TRUE(agent.connect(address()));
  record_all(agent, 1, 1, 100);
  record_all(agent, 2, 2, 200);
  const auto first = reported_.session([](const auto& s) { return s.recording == 1; });
  const auto second = reported_.session(
      [](const auto& s) { return s.recording == 2 && s.state == SessionState::kComplete; });
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->name, second->name);
  EXPECT_EQ(stored_events(*first, 0, 100), index_events(0, 100));
  EXPECT_EQ(stored_events(*second, 0, 200), index_events(0, 200));
}

TEST_F(IngestTest, UnixSocketServesToo) {
  options_.listen = "unix:" + root_ + "/ingest.sock";
  start();
  FakeAgent agent;
  ASSERT_TRUE(agent.connect(address()));
  record_all(agent, 1, 1, 10);
  EXPECT_TRUE(reported_.session_in(SessionState::kComplete).has_value());
}

TEST_F(IngestTest, ResumesExactlyAfterACutWithinAFrame) {
  start();
  FakeAgent agent;
  ASSERT_TRUE(agent.connect(address()));
  ASSERT_TRUE(agent.start_recording(1));
  ASSERT_TRUE(agent.open_stream(3, 33));
  ASSERT_TRUE(agent.send_events(3, 0, 1000));
  ASSERT_TRUE(agent.wait_stored(3, 1000));
  const auto whole =
      fakes::page_frame_bytes(fakes::index_page_header(3, 1000, 1000), index_events(1000, 1000));
  ASSERT_TRUE(agent.data().send_bytes(Bytes(whole).first(whole.size() / 2)));
  agent.disconnect();
  const auto interrupted = reported_.session_in(SessionState::kInterrupted);
  ASSERT_TRUE(interrupted.has_value());

  ASSERT_TRUE(agent.connect(address()));
  EXPECT_TRUE(agent.welcome().resumed());
  EXPECT_EQ(agent.welcome().session(), interrupted->name);
  ASSERT_TRUE(agent.resumed().contains(3));
  EXPECT_EQ(agent.resumed().at(3).index_next(), 1000u);
  EXPECT_FALSE(agent.resumed().at(3).closed());
  // What explains the data comes again; a page may overlap what is stored.
  ASSERT_TRUE(agent.start_recording(1));
  ASSERT_TRUE(agent.open_stream(3, 33));
  ASSERT_TRUE(agent.send_events(3, 500, 1500));
  ASSERT_TRUE(agent.close_stream(3, 2000));
  ASSERT_TRUE(agent.end_recording());
  ASSERT_TRUE(agent.wait_recording_ended(1));
  const auto session = reported_.session_in(SessionState::kComplete);
  ASSERT_TRUE(session.has_value());
  EXPECT_EQ(session->name, interrupted->name);
  EXPECT_EQ(session->totals.lost_events, 0u);
  EXPECT_EQ(stored_events(*session, 0, 2000), index_events(0, 2000));
  EXPECT_EQ(reported_.session_count(), 1u);
  const auto back = reported_.agent([](const auto& one) { return one.reconnects == 1; });
  EXPECT_TRUE(back.has_value());
}

// The old connection's pages are still queued when the process is back: the positions that the
// agent is given must count them.
TEST_F(IngestTest, ResumePositionsCountWhatTheOldConnectionBrought) {
  start();
  FakeAgent agent;
  ASSERT_TRUE(agent.connect(address()));
  ASSERT_TRUE(agent.start_recording(1));
  ASSERT_TRUE(agent.open_stream(1, 11));
  uint64_t sent = 0;
  for (; sent < 200'000; sent += 2000) ASSERT_TRUE(agent.send_events(1, sent, 2000));
  ASSERT_TRUE(agent.wait_stored(1, 2000));
  agent.disconnect();
  ASSERT_TRUE(agent.connect(address()));
  ASSERT_TRUE(agent.resumed().contains(1));
  const uint64_t next = agent.resumed().at(1).index_next();
  EXPECT_EQ(next % 2000, 0u);
  ASSERT_TRUE(agent.start_recording(1));
  ASSERT_TRUE(agent.open_stream(1, 11));
  for (uint64_t at = next; at < sent; at += 2000) ASSERT_TRUE(agent.send_events(1, at, 2000));
  ASSERT_TRUE(agent.close_stream(1, sent));
  ASSERT_TRUE(agent.end_recording());
  ASSERT_TRUE(agent.wait_recording_ended(1));
  const auto session = reported_.session_in(SessionState::kComplete);
  ASSERT_TRUE(session.has_value());
  EXPECT_EQ(stored_events(*session, 0, sent), index_events(0, static_cast<uint32_t>(sent)));
}

TEST_F(IngestTest, NewConnectionReplacesAHalfOpenOne) {
  start();
  FakeAgent old;
  ASSERT_TRUE(old.connect(address()));
  ASSERT_TRUE(old.start_recording(1));
  ASSERT_TRUE(old.open_stream(1, 11));
  ASSERT_TRUE(old.send_events(1, 0, 10));
  ASSERT_TRUE(old.wait_stored(1, 10));
  FakeAgent again;
  again.resume_key() = old.resume_key();
  again.set_recording(1, true);
  ASSERT_TRUE(again.connect(address()));
  EXPECT_TRUE(again.welcome().resumed());
  EXPECT_EQ(again.resumed().at(1).index_next(), 10u);
  EXPECT_TRUE(old.wait_control_end());
}

// The seal's ack was lost with the link: the agent repeats the recording, and nothing is stored
// twice.
TEST_F(IngestTest, RepeatedRecordingIsDroppedAndAcknowledgedAgain) {
  start();
  std::string key;
  {
    FakeAgent agent;
    ASSERT_TRUE(agent.connect(address()));
    key = agent.resume_key();
    record_all(agent, 1, 1, 50);
  }
  const auto repeat = [this, &key] {
    FakeAgent agent;
    agent.resume_key() = key;
    agent.set_recording(1, false);
    ASSERT_TRUE(agent.connect(address()));
    ASSERT_TRUE(agent.start_recording(1));
    ASSERT_TRUE(agent.open_stream(1, 101));
    ASSERT_TRUE(agent.send_events(1, 0, 50));
    ASSERT_TRUE(agent.end_recording());
    EXPECT_TRUE(agent.wait_recording_ended(1));
  };
  repeat();
  start();  // and a collector that knows nothing of it but the files
  repeat();
  EXPECT_EQ(reported_.session_count(), 1u);
}

TEST_F(IngestTest, SealsTheSessionOfAnAbsentAgentAsRecovered) {
  options_.resume = milliseconds{50};
  start();
  FakeAgent agent;
  ASSERT_TRUE(agent.connect(address()));
  ASSERT_TRUE(agent.start_recording(1));
  ASSERT_TRUE(agent.open_stream(1, 11));
  ASSERT_TRUE(agent.send_events(1, 0, 10));
  ASSERT_TRUE(agent.wait_stored(1, 10));
  agent.disconnect();
  const auto session = reported_.session_in(SessionState::kRecovered);
  ASSERT_TRUE(session.has_value());
  EXPECT_EQ(stored_events(*session, 0, 10), index_events(0, 10));
  EXPECT_TRUE(reported_.agent([](const auto& one) { return one.state == AgentState::kGone; }));
}

// Through adb each connection has a way of its own: data may end before the Bye is read.
TEST_F(IngestTest, GoodbyeBehindTheEndOfDataIsHeard) {
  start();
  FakeAgent agent;
  ASSERT_TRUE(agent.connect(address()));
  record_all(agent, 1, 1, 10);
  agent.data().close();
  // Either nothing happens meanwhile, or the agent is given up, which shows below.
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  agent.say_goodbye(false);
  const auto gone =
      reported_.agent([](const AgentSnapshot& shown) { return shown.state == AgentState::kGone; });
  ASSERT_TRUE(gone.has_value());
  EXPECT_THAT(gone->status, HasSubstr("the agent said goodbye"));
  EXPECT_FALSE(reported_.was(AgentState::kDisconnected));
}

// And where none comes, it is no longer waited for than that.
TEST_F(IngestTest, EndOfDataWithoutAGoodbyeIsADisconnection) {
  start();
  FakeAgent agent;
  ASSERT_TRUE(agent.connect(address()));
  record_all(agent, 1, 1, 10);
  agent.data().close();
  EXPECT_TRUE(reported_.agent(
      [](const AgentSnapshot& shown) { return shown.state == AgentState::kDisconnected; }));
  // A returning agent is not mistaken for the half that remained.
  ASSERT_TRUE(agent.connect(address()));
  agent.data().close();
  agent.disconnect();
  ASSERT_TRUE(agent.connect(address()));
  record_all(agent, 2, 2, 10);
}

TEST_F(IngestTest, GoodbyeWithoutAnEndSealsAtOnce) {
  start();
  FakeAgent agent;
  ASSERT_TRUE(agent.connect(address()));
  ASSERT_TRUE(agent.start_recording(1));
  ASSERT_TRUE(agent.open_stream(1, 11));
  ASSERT_TRUE(agent.send_events(1, 0, 10));
  agent.say_goodbye(false);
  const auto session = reported_.session_in(SessionState::kRecovered);
  ASSERT_TRUE(session.has_value());
  EXPECT_EQ(session->totals.events, 10u);  // what was on the way came in
}

// A goodbye holds for the connection that it was said on.
TEST_F(IngestTest, WaitsAgainForAgentsBackFromAGoodbye) {
  start();
  FakeAgent agent;
  ASSERT_TRUE(agent.connect(address()));
  record_all(agent, 1, 1, 10);
  agent.say_goodbye(false);
  ASSERT_TRUE(reported_.agent([](const auto& one) { return one.state == AgentState::kGone; }));
  ASSERT_TRUE(agent.connect(address()));
  ASSERT_TRUE(agent.start_recording(2));
  ASSERT_TRUE(agent.open_stream(1, 11));
  ASSERT_TRUE(agent.send_events(1, 0, 10));
  ASSERT_TRUE(agent.wait_stored(1, 10));
  agent.disconnect();
  EXPECT_TRUE(
      reported_.agent([](const auto& one) { return one.state == AgentState::kDisconnected; }));
  ASSERT_TRUE(agent.connect(address()));
  EXPECT_TRUE(agent.welcome().resumed());
}

TEST_F(IngestTest, HowTheProcessEndedIsKeptAndShown) {
  start();
  FakeAgent agent;
  ASSERT_TRUE(agent.connect(address()));
  record_all(agent, 1, 1, 10);  // whose end says nothing of the process
  const auto first = reported_.session_in(SessionState::kComplete);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->process_end, storage::ProcessEnd{});
  EXPECT_EQ(manifest(*first).find("\"signal\""), std::string::npos);

  ASSERT_TRUE(agent.start_recording(2));
  wire::RecordingEnd end;
  end.set_recording(2);
  end.set_reason("exit");
  end.mutable_process_end()->set_how(wire::ProcessEnd::SIGNALED);
  end.mutable_process_end()->set_signal(11);
  ASSERT_TRUE(agent.data().send(wire::FrameType::kRecordingEnd, end));
  ASSERT_TRUE(agent.wait_recording_ended(2));
  const auto second = reported_.session([](const SessionSnapshot& session) {
    return session.recording == 2 && session.state == SessionState::kComplete;
  });
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->process_end,
            (storage::ProcessEnd{storage::ProcessEnd::How::kSignaled, 0, 11, false}));
  EXPECT_THAT(manifest(*second), HasSubstr("\"signal\": 11"));
}

// What was on its way when the collector was asked to stop is in the files too.
TEST_F(IngestTest, StoppingLeavesTheSessionToTheNextStart) {
  start();
  FakeAgent agent;
  ASSERT_TRUE(agent.connect(address()));
  ASSERT_TRUE(agent.start_recording(1));
  ASSERT_TRUE(agent.open_stream(1, 11));
  ASSERT_TRUE(agent.send_events(1, 0, 10));
  ASSERT_TRUE(agent.wait_stored(1, 10));
  ASSERT_TRUE(agent.send_events(1, 10, 20));
  EXPECT_TRUE(ingest_->stop(fakes::kPatience));
  ASSERT_TRUE(agent.wait_bye());
  EXPECT_TRUE(agent.bye()->will_return());
  const auto left = reported_.session_in(SessionState::kInterrupted);
  ASSERT_TRUE(left.has_value());
  EXPECT_EQ(left->totals.events, 30u);
  EXPECT_THAT(manifest(*left), HasSubstr("the collector stopped; the session waits"));
  agent.disconnect();
  start();
  ASSERT_TRUE(agent.connect(address()));
  EXPECT_TRUE(agent.welcome().resumed());
  ASSERT_TRUE(agent.resumed().contains(1));
  EXPECT_EQ(agent.resumed().at(1).index_next(), 30u);
  ASSERT_TRUE(agent.start_recording(1));
  ASSERT_TRUE(agent.open_stream(1, 11));
  ASSERT_TRUE(agent.send_events(1, 30, 10));
  ASSERT_TRUE(agent.close_stream(1, 40));
  ASSERT_TRUE(agent.end_recording());
  ASSERT_TRUE(agent.wait_recording_ended(1));
  const auto session = reported_.session_in(SessionState::kComplete);
  ASSERT_TRUE(session.has_value());
  EXPECT_EQ(session->name, left->name);
  EXPECT_EQ(stored_events(*session, 0, 40), index_events(0, 40));
}

// Of a program that ends at the same moment, the end may still be on its way.
TEST_F(IngestTest, StoppingSealsARecordingWhoseEndWasSent) {
  start();
  FakeAgent agent;
  ASSERT_TRUE(agent.connect(address()));
  ASSERT_TRUE(agent.start_recording(1));
  ASSERT_TRUE(agent.open_stream(1, 11));
  ASSERT_TRUE(agent.send_events(1, 0, 10));
  ASSERT_TRUE(agent.close_stream(1, 10));
  ASSERT_TRUE(agent.end_recording());
  EXPECT_TRUE(ingest_->stop(fakes::kPatience));
  ASSERT_TRUE(reported_.session_in(SessionState::kComplete).has_value());
}

// Seen under load: not a byte of the recording had been read when the collector stopped, and it was
// dropped with the connection.
TEST_F(IngestTest, StoppingReadsARecordingThatWasSentBefore) {
  options_.io_threads = 1;
  start();
  FakeAgent agent;
  ASSERT_TRUE(agent.connect(address()));
  const auto agent_seen = reported_.agent([](const auto&) { return true; });
  ASSERT_TRUE(agent_seen.has_value());
  // The io thread does nothing until it is let go.
  std::promise<void> held;
  std::promise<void> let_go;
  ingest_->modules(agent_seen->process_id, [&](const auto&) {
    held.set_value();
    let_go.get_future().wait();
  });
  held.get_future().wait();
  ASSERT_TRUE(agent.start_recording(1));
  ASSERT_TRUE(agent.open_stream(1, 11));
  ASSERT_TRUE(agent.send_events(1, 0, 10));
  ASSERT_TRUE(agent.close_stream(1, 10));
  ASSERT_TRUE(agent.end_recording());
  std::thread stopping([this] { EXPECT_TRUE(ingest_->stop(fakes::kPatience)); });
  std::this_thread::sleep_for(milliseconds(200));  // its order waits for the thread now
  let_go.set_value();
  stopping.join();
  EXPECT_TRUE(reported_.session_in(SessionState::kComplete).has_value());
}

// While agents are waited for, no one else gets in.
TEST_F(IngestTest, StoppingCollectorListensNoMore) {
  options_.io_threads = 1;
  start();
  FakeAgent agent;
  ASSERT_TRUE(agent.connect(address()));
  ASSERT_TRUE(agent.start_recording(1));
  ASSERT_TRUE(reported_.session_in(SessionState::kActive).has_value());
  const std::string address = this->address();
  std::thread stopping([this] { EXPECT_TRUE(ingest_->stop(fakes::kPatience)); });
  ASSERT_TRUE(agent.wait_bye());
  EXPECT_FALSE(fakes::FrameSocket::connect(address).is_open());
  stopping.join();
}

// However little time there is.
TEST_F(IngestTest, SendsByeToEveryAgentWhenTheCollectorStops) {
  std::atomic<int> stopped{0};
  start();
  FakeAgent agent;
  ASSERT_TRUE(agent.connect(address()));
  ingest_->attach(
      "place", [](const OnConnected&) {},
      [&](const DialReport& report) { stopped += report.state == DialReport::State::kStopped; });
  ASSERT_FALSE(
      answer_of<std::string>([&](auto done) { ingest_->detach_address("none", done); }).ok());
  EXPECT_TRUE(ingest_->stop(milliseconds{0})) << "nothing is recorded";
  EXPECT_TRUE(agent.wait_bye());
  EXPECT_EQ(stopped, 1);
  EXPECT_TRUE(ingest_->stop(milliseconds{0}));
}

TEST_F(IngestTest, StoppingForGoodSealsWhatRecords) {
  options_.seal_at_stop = true;
  start();
  FakeAgent agent;
  ASSERT_TRUE(agent.connect(address()));
  ASSERT_TRUE(agent.start_recording(1));
  ASSERT_TRUE(agent.open_stream(1, 11));
  ASSERT_TRUE(agent.send_events(1, 0, 10));
  ASSERT_TRUE(agent.wait_stored(1, 10));
  EXPECT_TRUE(ingest_->stop(fakes::kPatience));
  ASSERT_TRUE(agent.wait_bye());
  EXPECT_FALSE(agent.bye()->will_return());
  const auto session = reported_.session_in(SessionState::kRecovered);
  ASSERT_TRUE(session.has_value());
  EXPECT_EQ(session->status, "collector stopped");
  EXPECT_EQ(stored_events(*session, 0, 10), index_events(0, 10));
}

// A collector that was killed left the session unsealed; its successor continues with the same
// files. The copy of a live root is what kill -9 leaves: everything that was acknowledged is in it.
TEST_F(IngestTest, SuccessorResumesWhatAKilledCollectorLeftOpen) {
  start();
  FakeAgent agent;
  ASSERT_TRUE(agent.connect(address()));
  ASSERT_TRUE(agent.start_recording(1));
  ASSERT_TRUE(agent.open_stream(1, 11));
  ASSERT_TRUE(agent.send_events(1, 0, 500));
  ASSERT_TRUE(agent.wait_stored(1, 500));
  const std::string left = root_ + "_left";
  std::filesystem::copy(root_, left, std::filesystem::copy_options::recursive);
  agent.disconnect();
  options_.storage.root = left;
  start();
  ASSERT_TRUE(reported_.session_in(SessionState::kInterrupted).has_value());
  const auto away = reported_.agent([](const AgentSnapshot& one) {
    return one.state == AgentState::kDisconnected && one.status.starts_with("recorded when");
  });
  ASSERT_TRUE(away.has_value());
  EXPECT_EQ(away->process_name, "fake");
  EXPECT_EQ(away->session, reported_.session_in(SessionState::kInterrupted)->name);
  ASSERT_TRUE(agent.connect(address()));
  EXPECT_TRUE(agent.welcome().resumed());
  ASSERT_TRUE(agent.resumed().contains(1));
  EXPECT_EQ(agent.resumed().at(1).index_next(), 500u);
  ASSERT_TRUE(agent.start_recording(1));
  ASSERT_TRUE(agent.open_stream(1, 11));
  ASSERT_TRUE(agent.send_events(1, 500, 500));
  ASSERT_TRUE(agent.close_stream(1, 1000));
  ASSERT_TRUE(agent.end_recording());
  ASSERT_TRUE(agent.wait_recording_ended(1));
  const auto session = reported_.session_in(SessionState::kComplete);
  ASSERT_TRUE(session.has_value());
  EXPECT_TRUE(session->directory.starts_with(left));
  EXPECT_EQ(stored_events(*session, 0, 1000), index_events(0, 1000));
  ingest_.reset();
  std::filesystem::remove_all(left);
}

// The functions of a session that an earlier collector left open are named like any other's.
TEST_F(IngestTest, RequestsNamesForSessionsASuccessorSeals) {
  struct Naming final : IngestObserver {
    void agent_changed(const AgentSnapshot&) override {}
    void agent_removed(AgentId) override {}
    void session_changed(const SessionSnapshot& session) override {
      reported.session_changed(session);
    }
    bool to_be_named(const std::string& name, const std::string& directory,
                     std::vector<uint64_t>) override {
      const std::lock_guard lock(mutex);
      asked.push_back(name + " " + directory);
      return true;
    }
    Reported reported;
    std::mutex mutex;
    std::vector<std::string> asked;
  };
  options_.storage.symbolize = true;
  options_.resume = milliseconds{10};
  std::string directory;
  {
    storage::SessionIdentity identity;
    identity.process_id = {7};
    auto writer = storage::Session::create(posix_, options_.storage, identity);
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE((*writer)->open_stream({1, 11, "thread", 1}).ok());
    const std::vector<uint8_t> events = index_events(0, 10);
    Page page{fakes::index_page_header(1, 0, 10), events, {}};
    ASSERT_TRUE((*writer)->append_pages({&page, 1}).ok());
    ASSERT_TRUE((*writer)->commit().ok());
    directory = (*writer)->directory();
  }
  Naming naming;
  auto next = Ingest::bind(options_, *fs_, naming);
  ASSERT_TRUE(next.ok());
  ASSERT_TRUE((*next)->run().ok());
  const auto session = naming.reported.session_in(SessionState::kRecovered);
  ASSERT_TRUE(session.has_value());
  EXPECT_EQ(session->symbols, storage::SymbolsState::kPending);
  // Once by the task that sealed it; if it was listed only then, the lister asks too.
  ASSERT_TRUE(eventually([&] {
    const std::lock_guard lock(naming.mutex);
    return !naming.asked.empty();
  }));
  const std::lock_guard lock(naming.mutex);
  for (const std::string& asked : naming.asked) EXPECT_EQ(asked, session->name + " " + directory);
}

// All of them, and not just the newest: one is looked at after the other.
TEST_F(IngestTest, SessionsOfEarlierCollectorsAreListed) {
  start();
  for (uint8_t id = 1; id <= 3; ++id) {
    fakes::FakeProcess process;
    process.id_byte = id;
    process.pid = 100 + id;
    process.name = "app " + std::to_string(id);
    process.tag = "tag";
    FakeAgent agent(process);
    ASSERT_TRUE(agent.connect(address()));
    record_all(agent, 1, 1, 10u * id);
  }
  ingest_.reset();
  Reported reported;
  auto next = Ingest::bind(options_, *fs_, reported);
  ASSERT_TRUE(next.ok());
  ASSERT_TRUE((*next)->run().ok());
  ASSERT_TRUE(eventually([&] { return reported.session_count() == 3; }));
  for (uint32_t id = 1; id <= 3; ++id) {
    const auto session = reported.session([id](const auto& one) { return one.pid == 100 + id; });
    ASSERT_TRUE(session.has_value()) << id;
    EXPECT_EQ(session->state, SessionState::kComplete);
    EXPECT_EQ(session->process_name, "app " + std::to_string(id));
    EXPECT_EQ(session->tag, "tag");
    EXPECT_EQ(session->totals.events, 10u * id);
    EXPECT_EQ(session->recording, 1u);
    EXPECT_GE(session->end_time, session->start_time);
    EXPECT_TRUE(session->directory.ends_with(session->name));
  }
}

// What an agent says of itself with each heartbeat is shown when it changes.
TEST_F(IngestTest, HeartbeatsAreShown) {
  options_.heartbeat = milliseconds{20'000};  // the fake's own say nothing
  start();
  FakeAgent agent;
  ASSERT_TRUE(agent.connect(address()));
  wire::Heartbeat beat;
  const auto shows = [&](const std::function<bool(const AgentSnapshot&)>& fits) {
    return agent.send_heartbeat(beat) && reported_.agent(fits).has_value();
  };
  beat.set_spooled_bytes(77);
  EXPECT_TRUE(shows([](const auto& one) { return one.spooled_bytes == 77; }));
  beat.set_detail(wire::DETAIL_ARMED);
  EXPECT_TRUE(shows([](const auto& one) { return one.detail == DetailMode::kArmed; }));
  beat.set_link_raw_bytes(100);
  beat.set_link_sent_bytes(50);
  EXPECT_TRUE(shows([](const auto& one) {
    return one.link_raw_bytes == 100 && one.link_sent_bytes == 50 && one.spooled_bytes == 77;
  }));
}

// Old sessions are listed in the background, and half-made ones removed: a session that was just
// being made was taken for one of those.
TEST_F(IngestTest, SessionThatBeginsDuringTheStartIsLeftAlone) {
  for (int round = 0; round < 20; ++round) {
    start();
    FakeAgent agent;
    agent.set_recording(static_cast<uint32_t>(round), false);
    ASSERT_TRUE(agent.connect(address()));
    record_all(agent, static_cast<uint32_t>(round) + 1, 1, 10);
  }
  start();
  EXPECT_TRUE(eventually([this] { return reported_.session_count() == 20; }));
}

TEST_F(IngestTest, ClockSyncFindsTheDevicesOffset) {
  start();
  FakeProcess process;
  process.clock_ahead_ns = 123'000'000'000;
  FakeAgent agent(process);
  ASSERT_TRUE(agent.connect(address()));
  ASSERT_TRUE(agent.start_recording(1));
  const auto session = reported_.session_in(SessionState::kActive);
  ASSERT_TRUE(session.has_value());
  std::string json;
  ASSERT_TRUE(eventually([&] {
    json = manifest(*session);
    return json.find("offset_ns") != std::string::npos;
  }));
  const size_t at = json.find("\"offset_ns\"");
  const int64_t offset = std::atoll(json.c_str() + json.find(':', at) + 1);
  EXPECT_NEAR(static_cast<double>(offset), 123e9, 1e9);
  // And it is measured again, for as long as the agent is there.
  EXPECT_TRUE(eventually([&] {
    json = manifest(*session);
    return json.find("offset_ns", json.find("offset_ns") + 1) != std::string::npos;
  }));
}

}  // namespace
}  // namespace collect::ingest
