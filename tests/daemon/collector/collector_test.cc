// The collector behind the control plane, with fake agents before it.
#include "daemon/collector/collector.h"

#include <fcntl.h>
#include <gmock/gmock.h>

#include <filesystem>

#include "daemon/symbolize/lookup/symbol_file.h"
#include "tests/daemon/collector/collector_fixture.h"
#include "tests/fakes/dial9_stream.h"

// Looked up by name in this very program.
extern "C" __attribute__((noinline, used)) int collector_test_landmark(int value) {
  return value + 1;
}

namespace collect::daemon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr uint32_t kNoInterval = 0;

TEST_F(CollectorTest, ShowsAgentsAndSessionsByEveryName) {
  FakeAgent app(process(1, "app", 10));
  FakeAgent other(process(2, "other", 20));
  ASSERT_TRUE(app.connect(collector_->ingest_address()));
  ASSERT_TRUE(other.connect(collector_->ingest_address()));
  shown("other", api::AGENT_STATE_CONNECTED);
  begin(app, 1, 100);
  const api::Agent agent = shown("app", api::AGENT_STATE_RECORDING);
  EXPECT_THAT(agent.name(), HasSubstr("agents/"));
  EXPECT_EQ(agent.os(), "linux");
  EXPECT_EQ(agent.arch(), "x86_64");
  for (const char* filter : {"app", "10", "tag-app"}) {
    EXPECT_THAT(collector_->agents(any(filter)), SizeIs(1)) << filter;
    EXPECT_THAT(collector_->sessions(any(filter)), SizeIs(1)) << filter;
  }
  EXPECT_THAT(collector_->agents(any("device")), SizeIs(2));
  EXPECT_THAT(collector_->agents(any("absent")), SizeIs(0));

  const auto newest = collector_->session("");
  ASSERT_TRUE(newest.ok());
  EXPECT_EQ(newest->name(), agent.session());
  EXPECT_EQ(newest->agent(), agent.name());
  EXPECT_EQ(newest->state(), api::SESSION_STATE_ACTIVE);
  EXPECT_TRUE(collector_->session(newest->name().substr(9)).ok());  // without "sessions/"
  const auto nothing = collector_->session("session_20000101_000000/pid_1");
  ASSERT_FALSE(nothing.ok());
  EXPECT_EQ(nothing.code(), Code::kNotFound);
  EXPECT_THAT(nothing.error().message, HasSubstr(newest->name().substr(9)));

  const api::Stats stats = collector_->stats();
  EXPECT_EQ(stats.agents_connected(), 2u);
  EXPECT_EQ(stats.sessions_active(), 1u);
  EXPECT_EQ(stats.connections_accepted(), 4u);
  EXPECT_EQ(stats.events_stored(), 100u);
  EXPECT_EQ(stats.root(), root_);
  EXPECT_GT(stats.disk_free_bytes(), 0u);
  EXPECT_GT(stats.resident_bytes(), 0u);
  EXPECT_GE(stats.pages_stored(), 1u);
  EXPECT_LE(stats.pages_stored(), 100u);
  EXPECT_EQ(stats.events_lost(), 0u);
  const int64_t now = std::chrono::duration_cast<std::chrono::seconds>(
                          std::chrono::system_clock::now().time_since_epoch())
                          .count();
  EXPECT_GT(stats.start_time().seconds(), now - 600);
  EXPECT_GE(agent.connect_time().seconds(), stats.start_time().seconds());
  EXPECT_LE(agent.connect_time().seconds(), now);
  // The stream says at its end what it had to drop.
  ASSERT_TRUE(app.close_stream(1, 100, 7));
  ASSERT_TRUE(app.wait_closed(1));
  EXPECT_EQ(collector_->stats().events_lost(), 7u);
}

// A dial9 stream is a session without an agent: listed, watched, and stopped like the others.
TEST_F(CollectorTest, ShowsAndStopsADial9Feed) {
  for (const bool by_name : {true, false}) {
    fakes::FrameSocket feed = fakes::FrameSocket::connect(collector_->ingest_address());
    ASSERT_TRUE(feed.send_bytes(fakes::kDial9Example));
    api::Session session;
    const auto deadline = std::chrono::steady_clock::now() + fakes::kPatience;
    while (session.stored_bytes() != fakes::kDial9Example.size()) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      for (const api::Session& one : collector_->sessions(any("dial9"))) {
        if (one.state() == api::SESSION_STATE_ACTIVE) session = one;
      }
    }
    EXPECT_EQ(session.process_name(), "dial9");
    EXPECT_EQ(session.agent(), "");
    EXPECT_EQ(session.pid(), 0u);
    std::mutex mutex;
    std::condition_variable came;
    std::optional<api::Session> last;
    const auto watch = collector_->watch_session(session.name(), kNoInterval,
                                                 [&](const api::Session& now, bool is_last) {
                                                   std::lock_guard lock(mutex);
                                                   if (is_last) last = now;
                                                   came.notify_all();
                                                 });
    ASSERT_TRUE(watch.ok());
    Waiting<api::StopSessionResponse> stopped;
    collector_->methods().call(stop_request(any(by_name ? session.name() : "")),
                               stopped.callback());
    const auto ended = stopped.get();
    ASSERT_TRUE(ended.ok()) << to_string(ended.error());
    ASSERT_THAT(ended->outcomes(), SizeIs(1));
    EXPECT_EQ(ended->outcomes(0).session().name(), session.name());
    EXPECT_EQ(ended->outcomes(0).session().state(), api::SESSION_STATE_COMPLETE);
    EXPECT_TRUE(feed.ends());
    std::unique_lock lock(mutex);
    EXPECT_TRUE(came.wait_for(lock, fakes::kPatience, [&] { return last.has_value(); }));
    EXPECT_EQ(last->state(), api::SESSION_STATE_COMPLETE);
    lock.unlock();
    collector_->unwatch(*watch);
  }
}

TEST_F(CollectorTest, StartsAndStopsByEmptyRequests) {
  FakeAgent agent(process(1, "app", 10));
  agent.on_command([&](const wire::Command& command, wire::CommandResult& result) {
    result.set_recording(1);
    if (command.has_start_recording()) {
      EXPECT_TRUE(agent.start_recording(1));
    } else if (command.has_stop_recording()) {
      EXPECT_TRUE(agent.end_recording("command"));
    }
  });
  Waiting<api::StopSessionResponse> without_agent;
  collector_->methods().call(stop_request(), without_agent.callback());
  EXPECT_EQ(without_agent.get().code(), Code::kNotFound);
  ASSERT_TRUE(agent.connect(collector_->ingest_address()));
  shown("app", api::AGENT_STATE_CONNECTED);
  Waiting<api::StartSessionResponse> started;
  collector_->methods().call(api::StartSessionRequest(), started.callback());
  const auto begun = started.get();
  ASSERT_TRUE(begun.ok()) << to_string(begun.error());
  ASSERT_THAT(begun->outcomes(), SizeIs(1));
  const api::Session session = begun->outcomes(0).session();
  EXPECT_EQ(session.state(), api::SESSION_STATE_ACTIVE);
  Waiting<api::StartSessionResponse> again;
  api::StartSessionRequest app;
  *app.mutable_target() = any("app");
  collector_->methods().call(app, again.callback());
  EXPECT_EQ(again.get().code(), Code::kAlreadyExists);
  Waiting<api::StopSessionResponse> stopped;
  collector_->methods().call(stop_request(), stopped.callback());
  const auto ended = stopped.get();
  ASSERT_TRUE(ended.ok()) << to_string(ended.error());
  EXPECT_EQ(ended->outcomes(0).session().name(), session.name());
  EXPECT_EQ(ended->outcomes(0).session().state(), api::SESSION_STATE_COMPLETE);
  Waiting<api::StopSessionResponse> once_more;  // what was asked for holds already
  collector_->methods().call(stop_request(any(session.name())), once_more.callback());
  EXPECT_TRUE(once_more.get().ok());

  Waiting<api::Manifest> manifest;
  collector_->methods().call(named<api::GetManifestRequest>(""), manifest.callback());
  const auto message = manifest.get();
  ASSERT_TRUE(message.ok()) << to_string(message.error());
  EXPECT_EQ(message->session(), session.name());
  EXPECT_EQ(message->state(), "complete");
  EXPECT_EQ(message->format_version_major(), 2u);
  EXPECT_EQ(message->format_version_minor(), 2u) << "ATF version 2";
  EXPECT_EQ(message->symbol_count(), 0u) << "no one called a function";
}

TEST_F(CollectorTest, DetailReachesTheAgentAsAsked) {
  std::mutex mutex;
  std::vector<wire::SetDetail> received;
  FakeAgent agent(process(1, "app", 10));
  agent.on_command([&](const wire::Command& command, wire::CommandResult& result) {
    std::lock_guard lock(mutex);
    received.push_back(command.set_detail());
    result.set_at_ns(77);
    result.set_pre_roll_records(3);
    result.set_pre_roll_from_ns(70);
  });
  ASSERT_TRUE(agent.connect(collector_->ingest_address()));
  begin(agent, 1, 10);
  const api::Agent shown_agent = shown("app", api::AGENT_STATE_RECORDING);

  control::DetailCommand command;
  command.mode = api::DETAIL_MODE_ON;
  command.threads = {"7"};
  command.functions = {"0x100000040"};
  command.duration_ns = 2'000'000'000;
  command.pre_roll_ns = 500;
  const auto outcome = detail(command);
  ASSERT_TRUE(outcome.ok()) << to_string(outcome.error());
  EXPECT_FALSE(outcome->has_error());
  EXPECT_EQ(outcome->agent(), shown_agent.name());
  EXPECT_EQ(outcome->session(), shown_agent.session());
  EXPECT_EQ(outcome->effect_time_ns(), 77u);
  EXPECT_EQ(outcome->pre_roll_records(), 3u);
  EXPECT_EQ(outcome->pre_roll_start_time_ns(), 70u);
  EXPECT_EQ(outcome->functions_matched(), 1u);
  EXPECT_EQ(outcome->threads_matched(), 1u);
  // Seen: a pre-roll of what was not armed was no word of anybody.
  ASSERT_THAT(outcome->warnings(), SizeIs(1));
  EXPECT_THAT(outcome->warnings(0), HasSubstr("was not armed"));
  Waiting<api::ListThreadsResponse> threads;
  collector_->methods().call(api::ListThreadsRequest(), threads.callback());
  const auto listed = threads.get();
  ASSERT_TRUE(listed.ok()) << to_string(listed.error());
  EXPECT_EQ(listed->agent(), shown_agent.name());
  ASSERT_THAT(listed->threads(), SizeIs(1));
  EXPECT_EQ(listed->threads(0).thread_id(), 7u);
  Waiting<api::ListThreadsResponse> of_unknown;
  collector_->methods().call(named<api::ListThreadsRequest>("9"), of_unknown.callback());
  EXPECT_EQ(of_unknown.get().code(), Code::kNotFound);
  // Seen: an unknown thread was "ok".
  command.threads = {"99"};
  const auto unknown = detail(command);
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(unknown.error().message, HasSubstr("agents/1: no thread is \"99\"; there is 7"));
  for (const std::string& target : {shown_agent.name(), shown_agent.session(), std::string("10"),
                                    std::string("app"), std::string("tag-app")}) {
    EXPECT_TRUE(detail({.mode = api::DETAIL_MODE_OFF, .target = any(target)}).ok()) << target;
  }
  std::lock_guard lock(mutex);
  ASSERT_THAT(received, SizeIs(6));
  EXPECT_EQ(received[0].mode(), wire::DETAIL_ON);
  EXPECT_THAT(received[0].thread_ids(), ElementsAre(7));
  EXPECT_THAT(received[0].function_ids(), ElementsAre(0x100000040));
  EXPECT_EQ(received[0].duration_ns(), 2'000'000'000u);
  EXPECT_EQ(received[0].pre_roll_ns(), 500u);
  EXPECT_EQ(received[1].mode(), wire::DETAIL_OFF);
}

// The detail commands that an agent receives. Outlives the agent.
class ReceivedDetail {
 public:
  void take_from(FakeAgent& agent) {
    agent.on_command([this](const wire::Command& command, wire::CommandResult&) {
      const std::lock_guard lock(mutex_);
      commands_.push_back(command.set_detail());
      came_.notify_all();
    });
  }
  bool wait_for(size_t commands) {
    std::unique_lock lock(mutex_);
    return came_.wait_for(lock, fakes::kPatience, [&] { return commands_.size() >= commands; });
  }
  std::vector<wire::SetDetail> commands() {
    const std::lock_guard lock(mutex_);
    return commands_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<wire::SetDetail> commands_;
};

TEST_F(CollectorTest, TriggerArmsFiresAndMarks) {
  ReceivedDetail received;
  FakeAgent agent(process(1, "app", 10));
  received.take_from(agent);
  api::SetTriggersRequest request;
  api::Trigger& trigger = *request.add_triggers();
  ASSERT_TRUE(agent.connect(collector_->ingest_address()));
  begin(agent, 1, 10);
  const std::vector<uint8_t> events = fakes::index_events(10, 1);
  uint64_t called = 0;
  std::memcpy(&called, events.data() + 8, sizeof called);
  char id[32];
  std::snprintf(id, sizeof id, "0x%llx", static_cast<unsigned long long>(called));
  trigger.add_functions(id);
  trigger.mutable_pre_roll()->set_seconds(2);
  trigger.mutable_duration()->set_seconds(3);
  trigger.add_detail_functions("0x100000040");
  trigger.set_times(1);
  Waiting<api::SetTriggersResponse> waiting;
  collector_->methods().call(request, waiting.callback());
  const auto set = waiting.get();
  ASSERT_TRUE(set.ok()) << to_string(set.error());
  ASSERT_THAT(set->outcomes(), SizeIs(1));
  EXPECT_FALSE(set->outcomes(0).has_error()) << set->outcomes(0).error().message();
  EXPECT_EQ(set->outcomes(0).functions_matched(), 1u);
  ASSERT_TRUE(received.wait_for(1));
  const wire::SetDetail armed = received.commands()[0];
  EXPECT_EQ(armed.mode(), wire::DETAIL_ARMED);
  EXPECT_THAT(armed.function_ids(), ElementsAre(0x100000040u));

  ASSERT_TRUE(agent.send_events(1, 10, 2));
  ASSERT_TRUE(received.wait_for(2));
  const wire::SetDetail on = received.commands()[1];
  EXPECT_EQ(on.mode(), wire::DETAIL_ON);
  EXPECT_EQ(on.pre_roll_ns(), 2'000'000'000u);
  EXPECT_EQ(on.duration_ns(), 3'000'000'000u);
  EXPECT_THAT(on.function_ids(), ElementsAre(0x100000040u));
  const auto now = triggers_of({});
  ASSERT_TRUE(now.ok());
  ASSERT_THAT(now->outcomes(), SizeIs(1));
  EXPECT_EQ(now->outcomes(0).triggers(0).fired_count(), 1u);
  ASSERT_TRUE(agent.send_events(1, 12, 64));
  ASSERT_TRUE(agent.wait_stored(1, 76));

  const auto session = collector_->session("");
  ASSERT_TRUE(session.ok());
  ASSERT_TRUE(agent.close_stream(1, 76));
  ASSERT_TRUE(agent.end_recording());
  ASSERT_TRUE(agent.wait_recording_ended(1));
  Waiting<api::StopSessionResponse> sealed;
  collector_->methods().call(stop_request(any(session->name())), sealed.callback());
  ASSERT_TRUE(sealed.get().ok());
  EXPECT_THAT(received.commands(), SizeIs(2)) << "it may fire once";
  Waiting<std::shared_ptr<control::FileReader>> opened;
  collector_->open_file(session->name(), "manifest.json", opened.callback());
  const auto reader = opened.get();
  ASSERT_TRUE(reader.ok());
  Waiting<std::string> text;
  (*reader)->read(0, (*reader)->size(), text.callback());
  EXPECT_THAT(*text.get(), HasSubstr(std::string("trigger 1: a call of ") + id));
  EXPECT_EQ(triggers_of(any(shown("app", api::AGENT_STATE_CONNECTED).name()))->outcomes_size(), 0)
      << "they end with the session";
}

TEST_F(CollectorTest, CounterThatPassesItsBoundFires) {
  ReceivedDetail received;
  FakeAgent agent(process(1, "app", 10));
  received.take_from(agent);
  ASSERT_TRUE(agent.connect(collector_->ingest_address()));
  begin(agent, 1, 10);
  api::SetTriggersRequest request;
  api::Trigger& trigger = *request.add_triggers();
  trigger.set_event(api::Trigger::EVENT_COUNTER);
  trigger.set_counter("queue_depth");
  trigger.set_above(1000);
  trigger.mutable_duration()->set_seconds(3);
  Waiting<api::SetTriggersResponse> waiting;
  collector_->methods().call(request, waiting.callback());
  const auto set = waiting.get();
  ASSERT_TRUE(set.ok()) << to_string(set.error());
  EXPECT_FALSE(set->outcomes(0).has_error()) << set->outcomes(0).error().message();

  ASSERT_TRUE(agent.send_counter("queue_depth", 1000, 1000));
  ASSERT_TRUE(agent.send_counter("queue_depth", 5, 1024));
  ASSERT_TRUE(received.wait_for(1));
  EXPECT_EQ(received.commands()[0].mode(), wire::DETAIL_ON);
  EXPECT_EQ(received.commands()[0].duration_ns(), 3'000'000'000u);
  const auto now = triggers_of({});
  ASSERT_TRUE(now.ok());
  EXPECT_EQ(now->outcomes(0).triggers(0).fired_count(), 1u);
  // Counters are shown with the next heartbeat.
  ASSERT_TRUE(agent.send_heartbeat({}));
  ASSERT_TRUE(eventually([&] {
    const api::Agent shown_now = shown("app", api::AGENT_STATE_RECORDING);
    return shown_now.counters_size() == 1 && shown_now.counters(0).name() == "queue_depth" &&
           shown_now.counters(0).value() == 5;
  }));
}

TEST_F(CollectorTest, FunctionsAreFoundByName) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const auto elf =
      symbolize::SymbolFile::open(::open(self.c_str(), O_RDONLY | O_CLOEXEC), self, {});
  ASSERT_TRUE(elf.ok());
  std::mutex mutex;
  std::vector<uint64_t> ids;
  FakeAgent agent(process(1, "app", 10));
  agent.on_command([&](const wire::Command& command, wire::CommandResult&) {
    std::lock_guard lock(mutex);
    ids.assign(command.set_detail().function_ids().begin(),
               command.set_detail().function_ids().end());
  });
  ASSERT_TRUE(agent.connect(collector_->ingest_address()));
  ASSERT_TRUE(agent.start_recording(1));
  wire::Modules modules;
  wire::Module* module = modules.add_modules();
  module->set_module_id(5);
  module->set_path(self);
  module->set_build_id(std::string((*elf)->build_id().begin(), (*elf)->build_id().end()));
  module->set_size((*elf)->image_bytes());
  ASSERT_TRUE(agent.data().send(wire::FrameType::kModules, modules));
  begin(agent, 1, 10);

  control::DetailCommand command;
  command.mode = api::DETAIL_MODE_ON;
  command.functions = {"collector_test_land*"};
  const auto found = detail(command);
  EXPECT_TRUE(found.ok()) << to_string(found.error());
  {
    std::lock_guard lock(mutex);
    ASSERT_THAT(ids, SizeIs(1));
    EXPECT_EQ(ids[0] >> 32, 5u);
    ASSERT_TRUE((*elf)->load().ok());
    EXPECT_EQ((*elf)->find(static_cast<uint32_t>(ids[0])).name, "collector_test_landmark");
  }
  command.functions = {"no_such_function"};
  EXPECT_THAT(detail(command).error().message, HasSubstr("no_such_function"));
  command.functions = {"*"};
  EXPECT_THAT(detail(command).error().message, HasSubstr("at most 4096"));
}

TEST_F(CollectorTest, DetailWithoutAMatchListsTheAgents) {
  FakeAgent agent(process(1, "app", 10));
  ASSERT_TRUE(agent.connect(collector_->ingest_address()));
  shown("app", api::AGENT_STATE_CONNECTED);
  const auto response = detail({.mode = api::DETAIL_MODE_ON, .target = any("absent")});
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.code(), Code::kNotFound);
  EXPECT_THAT(response.error().message, HasSubstr("app"));
}

TEST_F(CollectorTest, WatchesSeeEveryChangeAndNothingAfterTheirEnd) {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<api::AgentEvent> events;
  const auto agents = collector_->watch_agents([&](const api::AgentEvent& event) {
    std::lock_guard lock(mutex);
    events.push_back(event);
    changed.notify_all();
  });
  FakeAgent agent(process(1, "app", 10));
  ASSERT_TRUE(agent.connect(collector_->ingest_address()));
  begin(agent, 1, 10);
  shown("app", api::AGENT_STATE_RECORDING);
  {
    std::unique_lock lock(mutex);
    ASSERT_TRUE(changed.wait_for(lock, fakes::kPatience, [&] {
      return !events.empty() && events.back().agent().state() == api::AGENT_STATE_RECORDING;
    }));
    EXPECT_EQ(events.front().kind(), api::CHANGE_KIND_ADDED);
  }
  collector_->unwatch(agents);
  const size_t before = events.size();

  std::vector<std::pair<api::Session, bool>> sessions;
  const auto session =
      collector_->watch_session("", kNoInterval, [&](const api::Session& now, bool last) {
        std::lock_guard lock(mutex);
        sessions.emplace_back(now, last);
        changed.notify_all();
      });
  ASSERT_TRUE(session.ok());
  ASSERT_TRUE(agent.close_stream(1, 10));
  ASSERT_TRUE(agent.end_recording());
  {
    std::unique_lock lock(mutex);
    ASSERT_TRUE(changed.wait_for(lock, fakes::kPatience,
                                 [&] { return !sessions.empty() && sessions.back().second; }));
    EXPECT_EQ(sessions.back().first.state(), api::SESSION_STATE_COMPLETE);
    EXPECT_EQ(sessions.back().first.events(), 10u);
  }
  collector_->unwatch(*session);
  EXPECT_EQ(events.size(), before);
  EXPECT_FALSE(collector_->watch_session("nothing", kNoInterval, [](const auto&, bool) {}).ok());
}

TEST_F(CollectorTest, AttachReturnsTheAgentAndDetachLetsItGo) {
  fakes::ListeningSocket listener;
  Waiting<api::Agent> attached;
  collector_->methods().call(attach_request(listener.address()), attached.callback());
  FakeAgent agent(process(1, "phone app", 10));
  fakes::FrameSocket control = listener.accept();
  ASSERT_TRUE(control.receive_type(wire::FrameType::kDial).has_value());
  ASSERT_TRUE(agent.open_control(std::move(control), true));
  fakes::FrameSocket data = listener.accept();
  ASSERT_TRUE(data.receive_type(wire::FrameType::kDial).has_value());
  ASSERT_TRUE(agent.open_data(std::move(data), true));
  const auto answer = attached.get();
  ASSERT_TRUE(answer.ok());
  // The agent, unless no one answered for the two seconds that AttachAgent waits.
  EXPECT_EQ(answer->address(), listener.address());
  shown("phone app", api::AGENT_STATE_CONNECTED);
  Waiting<api::Agent> detached;
  collector_->methods().call(named<api::DetachAgentRequest>(listener.address()),
                             detached.callback());
  const auto gone = detached.get();
  ASSERT_TRUE(gone.ok()) << to_string(gone.error());
  EXPECT_EQ(gone->state(), api::AGENT_STATE_GONE);
  ASSERT_TRUE(agent.wait_refused());
  EXPECT_EQ(agent.refused()->code(), wire::REFUSE_DETACHED);
  Waiting<api::Agent> wrong;
  collector_->methods().call(attach_request("nowhere"), wrong.callback());
  EXPECT_EQ(wrong.get().code(), Code::kInvalidArgument);
}

TEST_F(CollectorTest, FilesAreListedReadAndRemovedOnceSealed) {
  FakeAgent agent(process(1, "app", 10));
  ASSERT_TRUE(agent.connect(collector_->ingest_address()));
  begin(agent, 1, 100);
  const auto active = collector_->session("");
  ASSERT_TRUE(active.ok());
  Waiting<api::DeleteSessionResponse> too_early;
  collector_->methods().call(named<api::DeleteSessionRequest>(active->name()),
                             too_early.callback());
  EXPECT_EQ(too_early.get().code(), Code::kUnsupported);
  ASSERT_TRUE(agent.close_stream(1, 100));
  ASSERT_TRUE(agent.end_recording());
  ASSERT_TRUE(agent.wait_recording_ended(1));
  Waiting<api::StopSessionResponse> sealed;
  collector_->methods().call(stop_request(any(active->name())), sealed.callback());
  ASSERT_TRUE(sealed.get().ok());

  Waiting<api::ListFilesResponse> listed;
  collector_->methods().call(named<api::ListFilesRequest>(active->name()), listed.callback());
  const auto files = listed.get();
  ASSERT_TRUE(files.ok()) << to_string(files.error());
  EXPECT_EQ(files->state(), api::SESSION_STATE_COMPLETE);
  uint64_t bytes = 0;
  bool found = false;
  for (const api::SessionFile& file : files->files()) {
    EXPECT_EQ(file.size_bytes(), std::filesystem::file_size(active->path() + "/" + file.path()));
    bytes += file.size_bytes();
    found = found || file.path() == "thread_0/index.atf";
  }
  EXPECT_TRUE(found);

  Waiting<std::shared_ptr<control::FileReader>> opened;
  collector_->open_file(active->name(), "thread_0/index.atf", opened.callback());
  const auto reader = opened.get();
  ASSERT_TRUE(reader.ok()) << to_string(reader.error());
  EXPECT_EQ((*reader)->size(), std::filesystem::file_size(active->path() + "/thread_0/index.atf"));
  Waiting<std::string> beginning;
  (*reader)->read(0, 4, beginning.callback());
  EXPECT_EQ(beginning.get().value(), "ATI2");
  Waiting<std::shared_ptr<control::FileReader>> outside;
  collector_->open_file(active->name(), "../../../etc/passwd", outside.callback());
  EXPECT_EQ(outside.get().code(), Code::kInvalidArgument);

  Waiting<api::DeleteSessionResponse> removed;
  collector_->methods().call(named<api::DeleteSessionRequest>(active->name()), removed.callback());
  const auto response = removed.get();
  ASSERT_TRUE(response.ok()) << to_string(response.error());
  EXPECT_EQ(response->removed_bytes(), bytes);
  EXPECT_FALSE(std::filesystem::exists(active->path()));
  EXPECT_EQ(collector_->session(active->name()).code(), Code::kNotFound);
}

TEST_F(CollectorTest, SnapshotIsWholeWhereTheAgentSaysSo) {
  Waiting<api::Session> nothing;
  collector_->methods().call(named<api::SnapshotSessionRequest>(""), nothing.callback());
  EXPECT_EQ(nothing.get().code(), Code::kNotFound);
  FakeAgent agent(process(1, "app", 10));
  std::atomic<bool> ships{true};
  agent.on_command([&ships](const wire::Command& command, wire::CommandResult& result) {
    result.set_ok(command.has_flush() && ships);
    if (!result.ok()) result.set_error("the rings are on fire");
  });
  ASSERT_TRUE(agent.connect(collector_->ingest_address()));
  begin(agent, 1, 100);
  const auto active = collector_->session("");
  ASSERT_TRUE(active.ok());
  Waiting<api::Session> waiting;
  collector_->methods().call(named<api::SnapshotSessionRequest>(""), waiting.callback());
  const auto made = waiting.get();
  ASSERT_TRUE(made.ok()) << to_string(made.error());
  EXPECT_EQ(made->state(), api::SESSION_STATE_COMPLETE);
  EXPECT_EQ(made->events(), 100u);
  EXPECT_EQ(made->agent(), "");
  EXPECT_EQ(made->name().find(active->name().substr(0, active->name().find('/', 10)) + "_snap1/"),
            0u)
      << made->name();
  EXPECT_EQ(collector_->session("")->name(), active->name());
  EXPECT_EQ(collector_->session("")->state(), api::SESSION_STATE_ACTIVE);

  ships = false;
  Waiting<api::Session> refused;
  collector_->methods().call(named<api::SnapshotSessionRequest>(active->name()),
                             refused.callback());
  const auto part = refused.get();
  ASSERT_TRUE(part.ok()) << to_string(part.error());
  EXPECT_EQ(part->state(), api::SESSION_STATE_RECOVERED);
  EXPECT_NE(part->missing().find("the rings are on fire"), std::string::npos) << part->missing();
  Waiting<api::Session> sealed;
  collector_->methods().call(named<api::SnapshotSessionRequest>(made->name()), sealed.callback());
  EXPECT_EQ(sealed.get().code(), Code::kUnsupported);
}

TEST_F(CollectorTest, ShowsUnreachableAddressAsDialing) {
  std::string nowhere;
  {
    fakes::ListeningSocket listener;
    nowhere = listener.address();
  }
  Waiting<api::Agent> attached;
  collector_->methods().call(attach_request(nowhere), attached.callback());
  const auto entry = attached.get();
  ASSERT_TRUE(entry.ok());
  EXPECT_EQ(entry->state(), api::AGENT_STATE_DIALING);
  EXPECT_THAT(entry->status(), HasSubstr("refused"));
  Waiting<api::StartSessionResponse> start;
  api::StartSessionRequest request;
  *request.mutable_target() = any(entry->name());
  collector_->methods().call(request, start.callback());
  EXPECT_EQ(start.get().code(), Code::kUnavailable);
  Waiting<api::Agent> detached;
  collector_->methods().call(named<api::DetachAgentRequest>(entry->name()), detached.callback());
  EXPECT_TRUE(detached.get().ok());
  EXPECT_THAT(collector_->agents({}), SizeIs(0));
}

}  // namespace
}  // namespace collect::daemon
