// Agents at addresses that are dialled, and what is said of those that do not answer.
#include <gmock/gmock.h>

#include "daemon/collector/agents/agent_attach.h"
#include "tests/daemon/collector/agent_commands_fixture.h"

namespace collect::daemon {
namespace {

using fakes::FrameSocket;
using fakes::ListeningSocket;
using testing::HasSubstr;
using testing::SizeIs;

std::string closed_address() {
  return ListeningSocket().address();  // it listens no more
}

class CollectorAttachTest : public CollectorOrdersTest {
 protected:
  void answer(ListeningSocket& listener, FakeAgent& agent) {
    answer_dials(agent, [&] { return listener.accept(); });
  }
};

// Others that are there are not taken for the one that is waited for.
TEST_F(CollectorAttachTest, OnlyWhoAnswersAtTheAddressIsTheAnswer) {
  FakeAgent caller(process(1, "caller", 10));
  connect(caller);
  shown("caller", api::AGENT_STATE_CONNECTED);
  ListeningSocket listener;
  Waiting<api::Agent> attached;
  collector_->methods().call(attach_request(listener.address()), attached.callback());
  FakeAgent phone(process(2, "phone", 20));
  answer(listener, phone);
  ASSERT_TRUE(attached.get().ok());
  const api::Agent there = shown("phone", api::AGENT_STATE_CONNECTED);

  const std::string nowhere = closed_address();
  const auto from = std::chrono::steady_clock::now();
  const auto dialing = attach(nowhere);
  EXPECT_GE(std::chrono::steady_clock::now() - from, kAttachWait) << "someone may answer yet";
  ASSERT_TRUE(dialing.ok());
  EXPECT_EQ(dialing->state(), api::AGENT_STATE_DIALING);
  EXPECT_EQ(dialing->address(), nowhere);
  // Who is there already is the answer at once.
  const auto again = attach(listener.address());
  ASSERT_TRUE(again.ok()) << to_string(again.error());
  EXPECT_EQ(again->name(), there.name());
  EXPECT_EQ(again->state(), api::AGENT_STATE_CONNECTED);
}

TEST_F(CollectorAttachTest, RefusesCommandsForUnansweringAgents) {
  const auto dialing = attach(closed_address());
  ASSERT_TRUE(dialing.ok());
  const auto unanswered = detail({.mode = api::DETAIL_MODE_ON, .target = any(dialing->name())});
  EXPECT_EQ(unanswered.code(), Code::kUnavailable);
  EXPECT_THAT(unanswered.error().message, HasSubstr(dialing->name() + ": does not answer yet: "));
  api::SetFunctionFilterRequest request;
  *request.mutable_target() = any(dialing->name());
  EXPECT_EQ(filter(request).code(), Code::kUnavailable);
  const auto gone = detach(dialing->name());
  ASSERT_TRUE(gone.ok()) << to_string(gone.error());
  EXPECT_EQ(gone->name(), dialing->name());
  EXPECT_EQ(gone->state(), api::AGENT_STATE_GONE);
  EXPECT_EQ(gone->status(), "detached by command");
}

TEST_F(CollectorAttachTest, DetachesAgentsThatConnectedByThemselves) {
  FakeAgent agent(process(1, "app", 10));
  connect(agent);
  const api::Agent app = shown("app", api::AGENT_STATE_CONNECTED);
  const auto gone = detach("app");
  ASSERT_TRUE(gone.ok()) << to_string(gone.error());
  EXPECT_EQ(gone->name(), app.name());
  EXPECT_EQ(gone->state(), api::AGENT_STATE_GONE);
  ASSERT_TRUE(agent.wait_refused());
  EXPECT_EQ(agent.refused()->code(), wire::REFUSE_DETACHED);
  EXPECT_EQ(detach("absent").code(), Code::kNotFound);
}

TEST_F(CollectorAttachTest, AddressThatIsDetachedIsDialledNoMore) {
  ListeningSocket listener;
  Waiting<api::Agent> attached;
  collector_->methods().call(attach_request(listener.address()), attached.callback());
  FakeAgent phone(process(2, "phone", 20));
  answer(listener, phone);
  ASSERT_TRUE(attached.get().ok());
  shown("phone", api::AGENT_STATE_CONNECTED);
  ASSERT_TRUE(detach("phone").ok());
  EXPECT_FALSE(listener.accept(std::chrono::milliseconds(300)).is_open());
}

TEST_F(CollectorAttachTest, SessionsThatAreSealedAreStoppedAlready) {
  FakeAgent agent(process(1, "app", 10));
  connect(agent);
  std::vector<std::string> names;
  for (uint32_t recording = 1; recording <= 2; ++recording) {
    begin(agent, recording, 2);
    shown("app", api::AGENT_STATE_RECORDING);
    names.push_back(collector_->session("")->name());
    ASSERT_TRUE(agent.close_stream(recording, 2));
    ASSERT_TRUE(agent.end_recording());
    ASSERT_TRUE(eventually(
        [&] { return collector_->session(names.back())->state() == api::SESSION_STATE_COMPLETE; }));
  }
  const auto stop = [&](const api::Selector& target) {
    Waiting<api::StopSessionResponse> stopped;
    collector_->methods().call(stop_request(target), stopped.callback());
    return stopped.get();
  };
  const auto both = stop(any("app"));
  ASSERT_TRUE(both.ok()) << to_string(both.error());
  ASSERT_THAT(both->outcomes(), SizeIs(1));
  EXPECT_EQ(both->outcomes(0).session().name(), collector_->sessions({}).front().name());
  EXPECT_EQ(both->outcomes(0).session().state(), api::SESSION_STATE_COMPLETE);
  const auto first = stop(any(names[0]));
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->outcomes(0).session().name(), names[0]);
  EXPECT_EQ(stop({}).error().message, "no session records now");
  EXPECT_THAT(stop(any("absent")).error().message, HasSubstr("no agent has "));
  Waiting<api::StartSessionResponse> started;
  api::StartSessionRequest of_absent;
  *of_absent.mutable_target() = any("absent");
  collector_->methods().call(of_absent, started.callback());
  EXPECT_EQ(started.get().code(), Code::kNotFound);
  FakeAgent idle(process(2, "idle", 20));
  connect(idle);
  shown("idle", api::AGENT_STATE_CONNECTED);
  EXPECT_EQ(stop(any("idle")).error().message, "no session records now");
  EXPECT_THAT(collector_->sessions(any("idle")), SizeIs(0));
}

}  // namespace
}  // namespace collect::daemon
