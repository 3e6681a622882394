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

#include "collect/control/v1/control.pb.h"

namespace collect::control {

// More agents (or devices) than this waiting for one client end its watch: it has to watch again.
inline constexpr size_t kMaxBacklogAgents = 16384;

// What an event is about.
inline const v1::Agent& subject(const v1::AgentEvent& event) {
  return event.agent();
}
inline const v1::Device& subject(const v1::DeviceEvent& event) {
  return event.device();
}
inline v1::Agent* mutable_subject(v1::AgentEvent& event) {
  return event.mutable_agent();
}
inline v1::Device* mutable_subject(v1::DeviceEvent& event) {
  return event.mutable_device();
}

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

// At most one event of each agent or device waits, in the order in which their first waiting event
// came.
template <class Event, class Subject>
class EventBacklog {
 public:
  bool empty() const { return order_.empty(); }
  bool overflowed() const { return overflowed_; }

  void put(Event event) {
    if (!present_done_) seen_before_present_.insert(subject(event).name());
    enqueue(std::move(event));
  }

  // What there was when the watch began, looked up after the watch was set up. What an event came
  // of already is left alone: the event is at least as new.
  void put_present(std::vector<Subject> present) {
    for (Subject& one : present) {
      if (seen_before_present_.contains(one.name())) continue;
      Event event;
      event.set_kind(v1::CHANGE_KIND_PRESENT);
      *mutable_subject(event) = std::move(one);
      enqueue(std::move(event));
    }
    Event synced;
    synced.set_kind(v1::CHANGE_KIND_SYNCED);
    enqueue(std::move(synced));
    present_done_ = true;
    seen_before_present_.clear();
  }

  Event take() {
    const auto found = waiting_.find(order_.front());
    Event event = std::move(found->second);
    waiting_.erase(found);
    order_.pop_front();
    return event;
  }

 private:
  void enqueue(Event event) {
    const std::string name = subject(event).name();  // empty: CHANGE_KIND_SYNCED
    const auto found = waiting_.find(name);
    if (found == waiting_.end()) {
      if (order_.size() - waiting_.count("") >= kMaxBacklogAgents) {
        overflowed_ = true;
        return;
      }
      order_.push_back(name);
      waiting_.emplace(name, std::move(event));
      return;
    }
    // The client has not seen the event that waits. An arrival that was never sent stays one.
    const auto before = found->second.kind();
    if (event.kind() == v1::CHANGE_KIND_CHANGED &&
        (before == v1::CHANGE_KIND_ADDED || before == v1::CHANGE_KIND_PRESENT)) {
      event.set_kind(before);
    }
    found->second = std::move(event);
  }

  std::deque<std::string> order_;
  std::unordered_map<std::string, Event> waiting_;
  std::unordered_set<std::string> seen_before_present_;
  bool present_done_ = false;
  bool overflowed_ = false;
};

using AgentBacklog = EventBacklog<v1::AgentEvent, v1::Agent>;
using DeviceBacklog = EventBacklog<v1::DeviceEvent, v1::Device>;

}  // namespace collect::control
