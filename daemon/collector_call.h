// One request on its way to several agents. Answers come on whatever threads there are.
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "daemon/control/collector_api.h"

namespace collect::daemon {

// The last agent to answer hands the answers of all of them on.
template <class Answer>
class CollectorCall {
 public:
  using Done = std::function<void(std::vector<Answer>)>;

  // `agents` is not 0.
  CollectorCall(size_t agents, Done done) : missing_(agents), done_(std::move(done)) {}

  void add(Answer answer) {
    std::unique_lock lock(mutex_);
    answers_.push_back(std::move(answer));
    if (--missing_ != 0) return;
    lock.unlock();
    done_(std::move(answers_));
  }

 private:
  std::mutex mutex_;
  size_t missing_;               // guarded by mutex_
  std::vector<Answer> answers_;  // guarded by mutex_
  Done done_;
};

template <class Response>
using OutcomeOf = std::remove_pointer_t<decltype(std::declval<Response&>().add_outcomes())>;

// A request whose response has an outcome for each agent.
template <class Response>
class OutcomeCall : public CollectorCall<OutcomeOf<Response>> {
 public:
  OutcomeCall(size_t agents, control::Callback<Response> done)
      : CollectorCall<OutcomeOf<Response>>(
            agents, [done = std::move(done)](std::vector<OutcomeOf<Response>> outcomes) {
              Response response;
              for (auto& outcome : outcomes) *response.add_outcomes() = std::move(outcome);
              done(std::move(response));
            }) {}

  void fail(OutcomeOf<Response> outcome, const std::string& why) {
    outcome.set_error(why);
    this->add(std::move(outcome));
  }
};

}  // namespace collect::daemon
