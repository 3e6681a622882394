// A collector and agents that keep the commands that they receive.
#pragma once

#include <functional>
#include <mutex>
#include <vector>

#include "tests/daemon/collector/collector_fixture.h"

namespace collect::daemon {

class CollectorOrdersTest : public CollectorTest {
 protected:
  // An agent that keeps its commands and answers with `answer_`.
  void connect(FakeAgent& agent) {
    agent.on_command([this](const wire::Command& command, wire::CommandResult& result) {
      std::lock_guard lock(mutex_);
      received_.push_back(command);
      if (answer_) answer_(command, result);
    });
    ASSERT_TRUE(agent.connect(collector_->ingest_address()));
  }
  std::vector<wire::Command> received() {
    std::lock_guard lock(mutex_);
    return received_;
  }
  void answer_with(std::function<void(const wire::Command&, wire::CommandResult&)> answer) {
    std::lock_guard lock(mutex_);
    answer_ = std::move(answer);
  }
  Result<api::FunctionFilterOutcome> filter(const api::SetFunctionFilterRequest& request) {
    Waiting<api::SetFunctionFilterResponse> waiting;
    collector_->methods().call(request, waiting.callback());
    const auto response = waiting.get();
    if (!response.ok()) return response.error();
    EXPECT_EQ(response->outcomes_size(), 1);
    return response->outcomes(0);
  }
  Result<api::TriggersOutcome> set_triggers(const api::SetTriggersRequest& request) {
    Waiting<api::SetTriggersResponse> waiting;
    collector_->methods().call(request, waiting.callback());
    const auto response = waiting.get();
    if (!response.ok()) return response.error();
    EXPECT_EQ(response->outcomes_size(), 1);
    return response->outcomes(0);
  }

  std::mutex mutex_;
  std::vector<wire::Command> received_;
  std::function<void(const wire::Command&, wire::CommandResult&)> answer_;
};

}  // namespace collect::daemon
