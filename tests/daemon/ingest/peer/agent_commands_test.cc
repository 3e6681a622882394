#include "daemon/ingest/peer/agent_commands.h"

#include <gmock/gmock.h>

#include "daemon/ingest/link/limits.h"
#include "tests/daemon/ingest/peer/peer_parts.h"

namespace collect::ingest {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class AgentCommandsTest : public PeerPartsTest {
 protected:
  AgentCommandsTest() { begin(); }
  void issue() {
    wire::Command command;
    command.mutable_stop_recording();
    commands().issue(command, [this](const Result<wire::CommandResult>& result) {
      answers_.push_back(result.ok() ? "done" : result.error().message);
    });
  }
  void start() {
    commands().start_recording([this](const Result<SessionSnapshot>& session) {
      answers_.push_back(session.ok() ? session->name : session.error().message);
    });
  }
  void answer(uint64_t id, uint32_t recording = 0, const std::string& error = "") {
    wire::CommandResult result;
    result.set_command_id(id);
    result.set_ok(error.empty());
    result.set_error(error);
    result.set_recording(recording);
    commands().take(result);
  }
  std::vector<uint64_t> sent() {
    std::vector<uint64_t> ids;
    for (const auto& command : parts_->control.take<wire::Command>(wire::FrameType::kCommand)) {
      ids.push_back(command.command_id());
    }
    return ids;
  }
  SteadyTime in(milliseconds later) const { return std::chrono::steady_clock::now() + later; }
  AgentCommands& commands() { return parts_->commands; }
  std::string name() const { return parts_->profile.name(); }

  std::vector<std::string> answers_;
};

TEST_F(AgentCommandsTest, EachHasANumberOfItsOwn) {
  issue();
  issue();
  const auto ids = sent();
  ASSERT_EQ(ids.size(), 2u);
  EXPECT_NE(ids[0], ids[1]);
  answer(ids[1]);
  answer(ids[1]);  // again
  EXPECT_THAT(answers_, ElementsAre("done"));
  commands().fail_all("the link ended");
  EXPECT_THAT(answers_, ElementsAre("done", "the link ended"));
}

TEST_F(AgentCommandsTest, AbsentAgentIsSentNothing) {
  parts_->control.is_connected = false;
  issue();
  EXPECT_THAT(answers_, ElementsAre(name() + " is not connected"));
  parts_->control.is_connected = true;
  EXPECT_THAT(sent(), IsEmpty());
}

TEST_F(AgentCommandsTest, SoManyMayWait) {
  for (size_t at = 0; at < kMaxPendingCommands; ++at) issue();
  EXPECT_THAT(answers_, IsEmpty());
  issue();
  EXPECT_THAT(answers_, ElementsAre(name() + " has not answered 256 commands yet"));
  answer(sent().front());
  issue();
  EXPECT_EQ(answers_.size(), 2u) << "there is room for another";
}

TEST_F(AgentCommandsTest, CommandsFailAfterTheTimeout) {
  issue();
  commands().sweep(in(kCommandTimeout - milliseconds{2'000}));
  EXPECT_THAT(answers_, IsEmpty());
  commands().sweep(in(kCommandTimeout));
  EXPECT_THAT(answers_, ElementsAre(name() + " did not answer within 10 s"));
}

TEST_F(AgentCommandsTest, StartIsAnsweredWithItsSession) {
  start();
  answer(sent().at(0), 1);
  EXPECT_THAT(answers_, IsEmpty()) << "the recording has not begun";
  ASSERT_FALSE(record(1).has_value());
  ASSERT_TRUE(loop_.run_until([this] { return recordings().opened() != nullptr; }));
  EXPECT_THAT(answers_, ElementsAre(recordings().current()->shown.name));
  start();
  EXPECT_THAT(answers_.back(), HasSubstr("records already, into session_"));
  EXPECT_THAT(sent(), IsEmpty());
}

// The recording may be there before the agent's answer to the command.
TEST_F(AgentCommandsTest, LateAnswerToAStartHasItsSession) {
  start();
  ASSERT_FALSE(record(1).has_value());
  ASSERT_TRUE(loop_.run_until([this] { return recordings().opened() != nullptr; }));
  EXPECT_THAT(answers_, IsEmpty());
  answer(sent().at(0), 1);
  EXPECT_THAT(answers_, ElementsAre(recordings().current()->shown.name));
}

TEST_F(AgentCommandsTest, StartFailsWithTheAgentsReasonOrInTime) {
  start();
  answer(sent().at(0), 0, "it is stopped");
  EXPECT_THAT(answers_, ElementsAre("the agent says: it is stopped"));
  start();
  answer(sent().at(0), 9);
  commands().sweep(in(kCommandTimeout));
  EXPECT_EQ(answers_.at(1), name() + " did not answer within 10 s");
  start();
  answer(sent().at(0), 9);
  commands().fail_all("the link ended");
  EXPECT_EQ(answers_.at(2), "the link ended");
}

TEST_F(AgentCommandsTest, SendsStopAndIgnoresItsAnswer) {
  commands().stop_recording();
  const auto stops = parts_->control.take<wire::Command>(wire::FrameType::kCommand);
  ASSERT_EQ(stops.size(), 1u);
  EXPECT_TRUE(stops[0].has_stop_recording());
  answer(stops[0].command_id());
}

}  // namespace
}  // namespace collect::ingest
