// Commands to agents: start, stop, detach, and those that get no answer.
#include <gmock/gmock.h>

#include "tests/daemon/ingest/ingest_fixture.h"

namespace collect::ingest {
namespace {

using fakes::FakeAgent;
using testing::HasSubstr;

class CommandTest : public IngestTest {
 protected:
  ProcessId process(uint8_t byte = 1) {
    ProcessId id;
    id.fill(byte);
    return id;
  }
  void wait_connected() {
    ASSERT_TRUE(reported_.agent([](const auto& a) { return a.state == AgentState::kConnected; }));
  }
};

TEST_F(CommandTest, StartAnswersWithTheSession) {
  start();
  FakeAgent agent;
  agent.on_command([&agent](const wire::Command& command, wire::CommandResult& result) {
    EXPECT_TRUE(command.has_start_recording());
    result.set_recording(1);
    EXPECT_TRUE(agent.start_recording(1));
  });
  ASSERT_TRUE(agent.connect(address()));
  wait_connected();
  const auto session =
      answer_of<SessionSnapshot>([&](auto done) { ingest_->start_recording(process(), done); });
  ASSERT_TRUE(session.ok()) << to_string(session.error());
  EXPECT_EQ(session->state, SessionState::kActive);
  EXPECT_FALSE(session->name.empty());
  const auto again =
      answer_of<SessionSnapshot>([&](auto done) { ingest_->start_recording(process(), done); });
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.code(), Code::kAlreadyExists);
}

TEST_F(CommandTest, AgentThatCannotStartSaysWhy) {
  start();
  FakeAgent agent;
  agent.on_command([](const wire::Command&, wire::CommandResult& result) {
    result.set_ok(false);
    result.set_error("no memory");
  });
  ASSERT_TRUE(agent.connect(address()));
  wait_connected();
  const auto session =
      answer_of<SessionSnapshot>([&](auto done) { ingest_->start_recording(process(), done); });
  ASSERT_FALSE(session.ok());
  EXPECT_THAT(session.error().message, testing::HasSubstr("no memory"));
}

TEST_F(CommandTest, StopAnswersWhenTheFilesAreSealed) {
  start();
  FakeAgent agent;
  agent.on_command([&agent](const wire::Command& command, wire::CommandResult&) {
    if (!command.has_stop_recording()) return;
    EXPECT_TRUE(agent.close_stream(1, 100));
    EXPECT_TRUE(agent.end_recording("command"));
  });
  ASSERT_TRUE(agent.connect(address()));
  ASSERT_TRUE(agent.start_recording(1));
  ASSERT_TRUE(agent.open_stream(1, 11));
  ASSERT_TRUE(agent.send_events(1, 0, 100));
  ASSERT_TRUE(agent.wait_stored(1, 100));
  const auto session =
      answer_of<SessionSnapshot>([&](auto done) { ingest_->stop_recording(process(), done); });
  ASSERT_TRUE(session.ok()) << to_string(session.error());
  EXPECT_EQ(session->state, SessionState::kComplete);
  EXPECT_EQ(stored_events(*session, 0, 100), fakes::index_events(0, 100));
  const auto again =
      answer_of<SessionSnapshot>([&](auto done) { ingest_->stop_recording(process(), done); });
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.code(), Code::kNotFound);
}

TEST_F(CommandTest, StopOfAnAbsentAgentSealsAndHolds) {
  start();
  FakeAgent agent;
  std::atomic<bool> has_stop{false};
  agent.on_command([&](const wire::Command& command, wire::CommandResult&) {
    if (command.has_stop_recording()) has_stop = true;
  });
  ASSERT_TRUE(agent.connect(address()));
  ASSERT_TRUE(agent.start_recording(1));
  ASSERT_TRUE(agent.open_stream(1, 11));
  ASSERT_TRUE(agent.send_events(1, 0, 100));
  ASSERT_TRUE(agent.wait_stored(1, 100));
  agent.disconnect();
  ASSERT_TRUE(reported_.session_in(SessionState::kInterrupted).has_value());
  const auto session =
      answer_of<SessionSnapshot>([&](auto done) { ingest_->stop_recording(process(), done); });
  ASSERT_TRUE(session.ok()) << to_string(session.error());
  EXPECT_EQ(session->state, SessionState::kRecovered);
  ASSERT_TRUE(agent.connect(address()));
  EXPECT_TRUE(eventually([&] { return has_stop.load(); }));
  ASSERT_TRUE(agent.start_recording(1));
  EXPECT_TRUE(agent.wait_recording_ended(1));
  EXPECT_EQ(reported_.session_count(), 1u);
}

TEST_F(CommandTest, AgentThatIsAwayCannotBeCommanded) {
  start();
  FakeAgent agent;
  ASSERT_TRUE(agent.connect(address()));
  ASSERT_TRUE(agent.start_recording(1));
  agent.disconnect();
  ASSERT_TRUE(reported_.session_in(SessionState::kInterrupted).has_value());
  wire::Command command;
  command.mutable_flush();
  const auto answer = answer_of<wire::CommandResult>(
      [&](auto done) { ingest_->command(process(), command, done); });
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.code(), Code::kUnavailable);
  EXPECT_THAT(answer.error().message, HasSubstr("is not connected"));
}

TEST_F(CommandTest, DetachingAnAbsentAgentSealsItsSession) {
  start();
  FakeAgent agent;
  ASSERT_TRUE(agent.connect(address()));
  ASSERT_TRUE(agent.start_recording(1));
  ASSERT_TRUE(agent.open_stream(1, 11));
  ASSERT_TRUE(agent.send_events(1, 0, 100));
  ASSERT_TRUE(agent.wait_stored(1, 100));
  agent.disconnect();
  ASSERT_TRUE(reported_.session_in(SessionState::kInterrupted).has_value());
  const auto detached =
      answer_of<AgentSnapshot>([&](auto done) { ingest_->detach(process(), done); });
  ASSERT_TRUE(detached.ok()) << to_string(detached.error());
  const auto session = reported_.session_in(SessionState::kRecovered);
  ASSERT_TRUE(session.has_value());
  EXPECT_EQ(session->totals.events, 100u);
  EXPECT_THAT(manifest(*session), HasSubstr("detached while its agent was disconnected"));
  EXPECT_FALSE(agent.connect(address()));
  ASSERT_TRUE(agent.refused().has_value());
  EXPECT_EQ(agent.refused()->code(), wire::REFUSE_DETACHED);
}

TEST_F(CommandTest, DetachedAgentIsRefusedFromThenOn) {
  start();
  FakeAgent agent;
  ASSERT_TRUE(agent.connect(address()));
  wait_connected();
  const auto gone = answer_of<AgentSnapshot>([&](auto done) { ingest_->detach(process(), done); });
  ASSERT_TRUE(gone.ok());
  EXPECT_EQ(gone->state, AgentState::kGone);
  ASSERT_TRUE(agent.wait_refused());
  EXPECT_EQ(agent.refused()->code(), wire::REFUSE_DETACHED);
  const uint64_t refused = ingest_->counters().connections_refused;
  EXPECT_FALSE(agent.connect(address()));
  EXPECT_EQ(agent.refused()->code(), wire::REFUSE_DETACHED);
  EXPECT_FALSE(agent.refused()->retry());
  EXPECT_EQ(ingest_->counters().connections_refused, refused + 1);
}

TEST_F(CommandTest, BrokenLinkAnswersWhatIsPending) {
  start();
  FakeAgent agent;
  std::mutex held;
  std::unique_lock hold(held);
  agent.on_command([&held](const wire::Command&, wire::CommandResult&) {
    std::lock_guard wait(held);  // the answer never comes while the link lives
  });
  ASSERT_TRUE(agent.connect(address()));
  wait_connected();
  wire::Command flush;
  flush.mutable_flush();
  struct Waiting {
    std::mutex mutex;
    std::optional<Result<wire::CommandResult>> result;
  } waiting;
  ingest_->command(process(), flush, [&waiting](Result<wire::CommandResult> result) {
    std::lock_guard lock(waiting.mutex);
    waiting.result = std::move(result);
  });
  agent.data().reset();
  EXPECT_TRUE(eventually([&] {
    std::lock_guard lock(waiting.mutex);
    return waiting.result.has_value() && !waiting.result->ok() &&
           waiting.result->code() == Code::kUnavailable;
  }));
  hold.unlock();
}

// What the orders of the next test leave in the session.
void expect_ordered(const storage::Manifest& manifest) {
  EXPECT_EQ(manifest.identity.recording, 1u);
  ASSERT_EQ(manifest.markers.size(), 1u);
  EXPECT_EQ(manifest.markers[0].text, "a marker");
  ASSERT_EQ(manifest.function_filters.size(), 2u);
  EXPECT_EQ(manifest.function_filters[0].functions, 5u);
  EXPECT_THAT(manifest.function_filters[1].except, testing::ElementsAre("idle"));
}

// Each of them is carried out by the process that it is for.
TEST_F(CommandTest, OrdersReachTheirProcess) {
  options_.storage.capture.enabled = true;
  start();
  fakes::FakeProcess other;
  other.id_byte = 2;
  FakeAgent bystander(other);
  ASSERT_TRUE(bystander.connect(address()));
  FakeAgent agent;
  agent.on_command([](const wire::Command& command, wire::CommandResult& result) {
    result.set_error(command.has_flush() ? "flushed" : "another command");
  });
  ASSERT_TRUE(agent.connect(address()));
  storage::FunctionFilter filter;
  filter.at_ns = 3;
  filter.only = {"main"};
  filter.functions = 5;
  ingest_->note_start_filter(process(), {5, {"nothing*"}, ""}, filter);
  const auto filtered =
      reported_.agent([](const auto& one) { return one.start_filter.has_value(); });
  ASSERT_TRUE(filtered.has_value());
  EXPECT_EQ(filtered->process_id, process());
  EXPECT_EQ(filtered->start_filter->functions, 5u);
  ASSERT_TRUE(agent.start_recording(1));
  ASSERT_TRUE(agent.send_module(7, "/bin/fake"));
  ASSERT_TRUE(agent.open_stream(1, 11));
  ASSERT_TRUE(agent.send_events(1, 0, 10));
  ASSERT_TRUE(agent.wait_stored(1, 10));
  const auto session = reported_.session_in(SessionState::kActive);
  ASSERT_TRUE(session.has_value());

  const auto modules = answer_of<std::vector<storage::ModuleInfo>>(
      [&](auto done) { ingest_->modules(process(), done); });
  ASSERT_TRUE(modules.ok());
  ASSERT_EQ(modules->size(), 1u);
  EXPECT_EQ((*modules)[0].path, "/bin/fake");
  const auto threads = answer_of<std::vector<storage::ThreadIdentity>>(
      [&](auto done) { ingest_->threads(process(), done); });
  ASSERT_TRUE(threads.ok());
  ASSERT_EQ(threads->size(), 1u);
  EXPECT_EQ((*threads)[0].thread_id, 11u);
  const auto marked =
      answer_of<uint64_t>([&](auto done) { ingest_->annotate(process(), 77, "a marker", done); });
  ASSERT_TRUE(marked.ok());
  EXPECT_EQ(*marked, 77u);
  wire::Command flush;
  flush.mutable_flush();
  const auto flushed =
      answer_of<wire::CommandResult>([&](auto done) { ingest_->command(process(), flush, done); });
  ASSERT_TRUE(flushed.ok());
  EXPECT_EQ(flushed->error(), "flushed");
  const auto watched = answer_of<std::string>(
      [&](auto done) { ingest_->watch_events(process(), {}, [](const SeenEvent&) {}, done); });
  ASSERT_TRUE(watched.ok());
  EXPECT_EQ(*watched, session->name);
  storage::FunctionFilter later;
  later.at_ns = 4;
  later.except = {"idle"};
  ingest_->note_function_filter(process(), later);
  const auto cut =
      answer_of<storage::SessionCut>([&](auto done) { ingest_->cut(process(), done); });
  ASSERT_TRUE(cut.ok()) << to_string(cut.error());
  expect_ordered(cut->manifest);
  EXPECT_FALSE(cut->files.empty());
  const auto rolled =
      answer_of<std::string>([&](auto done) { ingest_->roll_container(process(), done); });
  ASSERT_TRUE(rolled.ok()) << to_string(rolled.error());
  EXPECT_THAT(*rolled, HasSubstr(session->directory));
}

TEST_F(CommandTest, ReportsUnknownAgentsAsNotFound) {
  start();
  const auto answer =
      answer_of<SessionSnapshot>([&](auto done) { ingest_->stop_recording(process(99), done); });
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.code(), Code::kNotFound);
  const ProcessId unknown = process(99);
  const Code codes[] = {
      answer_of<SessionSnapshot>([&](auto done) {
        ingest_->start_recording(unknown, done);
      }).code(),
      answer_of<AgentSnapshot>([&](auto done) { ingest_->detach(unknown, done); }).code(),
      answer_of<std::vector<storage::ModuleInfo>>([&](auto done) {
        ingest_->modules(unknown, done);
      }).code(),
      answer_of<std::vector<storage::ThreadIdentity>>([&](auto done) {
        ingest_->threads(unknown, done);
      }).code(),
      answer_of<uint64_t>([&](auto done) { ingest_->annotate(unknown, 1, "x", done); }).code(),
      answer_of<std::string>([&](auto done) { ingest_->roll_container(unknown, done); }).code(),
      answer_of<wire::CommandResult>([&](auto done) {
        ingest_->command(unknown, {}, done);
      }).code(),
      answer_of<storage::SessionCut>([&](auto done) { ingest_->cut(unknown, done); }).code(),
      answer_of<std::string>([&](auto done) {
        ingest_->watch_events(unknown, {}, [](const SeenEvent&) {}, done);
      }).code(),
      answer_of<SessionSnapshot>([&](auto done) { ingest_->stop_feed("none", done); }).code(),
      answer_of<std::string>([&](auto done) { ingest_->detach_address("x:1", done); }).code(),
  };
  EXPECT_THAT(codes, testing::Each(Code::kNotFound));
}

}  // namespace
}  // namespace collect::ingest
