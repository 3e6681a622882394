// The triggers of every agent: which there are, how often each has fired, whether it may again.
//
// Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "collect/control/v1/control.pb.h"
#include "daemon/ingest/link/snapshot.h"

namespace collect::daemon {

namespace api = ::collect::control::v1;

class TriggerBook {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Instead of those that the agent had. What is seen for them bears the number that is returned.
  uint64_t set(ingest::AgentId agent, const std::string& session,
               const google::protobuf::RepeatedPtrField<api::Trigger>& triggers);
  // They end with the session.
  void forget(const std::string& session);
  // Counts it, and says what is to be done. Nothing: these triggers were replaced, it has fired as
  // often as it may, or what it started continues still.
  std::optional<api::Trigger> fire(ingest::AgentId agent, uint64_t set, size_t number, Time now);
  // What its detail was to continue until. Nothing: it has not fired, or its detail is over
  // already.
  std::optional<api::Trigger> end(ingest::AgentId agent, uint64_t set, size_t number, Time now);
  std::vector<api::Trigger> triggers(ingest::AgentId agent) const;

 private:
  struct State {
    api::Trigger trigger;
    Time over_at = Time::min();  // its detail; Time::max(): until a command ends it
  };
  struct Set {
    uint64_t number = 0;
    std::string session;
    std::vector<State> states;
  };

  State* find(ingest::AgentId agent, uint64_t set, size_t number);

  mutable std::mutex mutex_;
  std::unordered_map<ingest::AgentId, Set> sets_;  // guarded by mutex_
  uint64_t next_ = 1;                              // guarded by mutex_
};

}  // namespace collect::daemon
