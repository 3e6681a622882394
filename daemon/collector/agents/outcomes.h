// One request on its way to several agents. Answers may come on any threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "daemon/collector/agents/messages.h"
#include "daemon/control/collector_api.h"
#include "daemon/control/errors.h"

namespace collect::daemon {

// The last agent to answer hands the outcomes of all of them on. When all failed, so does the
// request, with the error of the first.
template <class Outcome>
class OutcomeCall {
 public:
  // `agents` is not 0.
  OutcomeCall(size_t agents, control::Callback<std::vector<Outcome>> done)
      : missing_(agents), done_(std::move(done)) {}

  void add(Outcome outcome) { add(std::move(outcome), std::nullopt); }

  void fail(Outcome outcome, const Error& error) {
    *outcome.mutable_error() = control::rpc_status(error);
    const std::string who = outcome.agent().empty() ? "" : outcome.agent() + ": ";
    add(std::move(outcome), Error{error.code, who + error.message});
  }

 private:
  void add(Outcome outcome, std::optional<Error> error) {
    std::unique_lock lock(mutex_);
    outcomes_.push_back(std::move(outcome));
    if (!error) {
      any_done_ = true;
    } else if (!first_error_) {
      first_error_ = std::move(error);
    }
    if (--missing_ != 0) return;
    lock.unlock();
    if (any_done_) {
      done_(std::move(outcomes_));
    } else {
      done_(*first_error_);
    }
  }

  std::mutex mutex_;  // guards what follows
  size_t missing_;
  bool any_done_ = false;
  std::optional<Error> first_error_;
  std::vector<Outcome> outcomes_;
  const control::Callback<std::vector<Outcome>> done_;
};

// The outcome of an agent that has not answered yet.
template <class Outcome>
Outcome outcome_for(const ingest::AgentSnapshot& agent) {
  Outcome outcome;
  outcome.set_agent(agent_name(agent.id));
  return outcome;
}

template <class Response>
using OutcomeOf = std::remove_pointer_t<decltype(std::declval<Response&>().add_outcomes())>;

// For a request whose response has nothing but outcomes.
template <class Response>
control::Callback<std::vector<OutcomeOf<Response>>> outcomes_into(
    control::Callback<Response> done) {
  return [done = std::move(done)](Result<std::vector<OutcomeOf<Response>>> outcomes) {
    if (!outcomes.ok()) {
      done(outcomes.error());
      return;
    }
    Response response;
    for (auto& outcome : *outcomes) *response.add_outcomes() = std::move(outcome);
    done(std::move(response));
  };
}

}  // namespace collect::daemon
