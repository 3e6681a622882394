// What a watch still owes its client. A client that reads slower than things happen gets the newest
// state of everything and misses states between, so that memory depends on how much there is to
// watch and never on how long the client sleeps.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "proto/control/v1/control.pb.h"

namespace collect::control {

// More agents than this waiting for one client end its watch: it has to watch again.
inline constexpr size_t kMaxBacklogAgents = 16384;

// One thing is watched: only its newest state waits.
template <class Message>
class NewestBacklog {
 public:
  bool empty() const { return !waiting_.has_value(); }
  bool overflowed() const { return false; }
  bool ever_put() const { return ever_put_; }

  void put(Message message) {
    waiting_ = std::move(message);
    ever_put_ = true;
  }

  Message take() {
    Message message = std::move(*waiting_);
    waiting_.reset();
    return message;
  }

 private:
  std::optional<Message> waiting_;
  bool ever_put_ = false;
};

// At most one event of each agent waits, in the order in which their first waiting event came.
class AgentBacklog {
 public:
  bool empty() const { return order_.empty(); }
  bool overflowed() const { return overflowed_; }

  void put(v1::AgentEvent event);

  // The agents there were when the watch began, looked up after the watch was set up. Agents of
  // which an event came already are left alone: the event is at least as new.
  void put_present(std::vector<v1::Agent> agents);

  v1::AgentEvent take();

 private:
  void enqueue(v1::AgentEvent event);

  std::deque<std::string> order_;
  std::unordered_map<std::string, v1::AgentEvent> waiting_;
  std::unordered_set<std::string> seen_before_present_;
  bool present_done_ = false;
  bool overflowed_ = false;
};

}  // namespace collect::control
