// What is known of agents and sessions right now: copies, updated by ingest's threads, read by
// anybody. One short lock; nothing is called while it is held.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collect/control/v1/agents.pb.h"
#include "daemon/ingest/link/snapshot.h"
#include "formats/core/result.h"

namespace collect::daemon {

namespace api = ::collect::control::v1;

inline bool is_up(const ingest::AgentSnapshot& agent) {
  return agent.state == ingest::AgentState::kConnected ||
         agent.state == ingest::AgentState::kRecording;
}

// Ended ones that are still listed; the oldest goes first. What is alive is always listed.
inline constexpr size_t kMaxEndedAgents = 1'000;
inline constexpr size_t kMaxEndedSessions = 1'000;

class Registry {
 public:
  enum class Change : uint8_t { kAdded, kChanged };

  Change put(const ingest::AgentSnapshot& agent);
  // What is known of its names and of its packing stays: ingest does not know of them.
  void put(const ingest::SessionSnapshot& session);
  // Nothing happens where the session is not known.
  void set_symbols(const std::string& name, storage::SymbolsState state);
  void set_packed(const std::string& name, bool packed, uint64_t container_bytes);
  // The removed one; absent when it was not there.
  Result<ingest::AgentSnapshot> remove_agent(ingest::AgentId id);
  void remove_session(const std::string& name);

  std::vector<ingest::AgentSnapshot> agents() const;      // by id
  std::vector<ingest::SessionSnapshot> sessions() const;  // newest first

  // By name, "agents/7" or "7"; empty: the only one that is connected. kNotFound says what there
  // is.
  Result<ingest::AgentSnapshot> agent(std::string_view name) const;
  // agent(), or the address that is dialled, or any word that means exactly one agent.
  Result<ingest::AgentSnapshot> agent_to_detach(std::string_view name) const;
  // By name with or without "sessions/"; empty: the newest. kNotFound says what there is.
  Result<ingest::SessionSnapshot> session(std::string_view name) const;

  // The agents that are meant: of those, the ones that are connected, if there are any. An empty
  // selector: every one that is connected. kNotFound says what there is.
  Result<std::vector<ingest::AgentSnapshot>> targets(const api::Selector& target) const;
  // targets(); with an empty selector, those whose session has not ended.
  Result<std::vector<ingest::AgentSnapshot>> recording_targets(const api::Selector& target) const;

 private:
  std::string agent_list() const;  // with mutex_ held: for messages
  std::string session_list() const;
  void forget_old_agents();
  void forget_old_sessions();

  mutable std::mutex mutex_;
  std::map<ingest::AgentId, ingest::AgentSnapshot> agents_;
  std::map<std::string, ingest::SessionSnapshot> sessions_;
};

}  // namespace collect::daemon
