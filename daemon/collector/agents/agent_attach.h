// AttachAgent and DetachAgent: agents that listen, at an address or on a device.
#pragma once

#include <asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "daemon/attach/attach.h"
#include "daemon/collector/agents/registry.h"
#include "daemon/control/collector_api.h"
#include "daemon/ingest/ingest.h"

namespace collect::daemon {

// How long AttachAgent waits for an agent to answer before it shows the address as DIALING.
inline constexpr std::chrono::milliseconds kAttachWait{2'000};

class AgentAttach {
 public:
  // Serves AttachAgentRequest and DetachAgentRequest. All outlive it; its timers run at `io`.
  AgentAttach(const Registry& registry, ingest::Ingest& ingest, attach::Attach& devices,
              asio::io_context& io, control::Methods& methods);

  // An agent that is dialled is up: answers the calls that wait for it.
  void agent_is_up(const ingest::AgentSnapshot& agent);

 private:
  struct Pending {
    uint64_t id = 0;
    std::string address;
    control::Callback<api::Agent> done;
  };
  void attach(const std::string& address, const control::Callback<api::Agent>& done);
  void attach_device(const std::string& address, const control::Callback<api::Agent>& done);
  void detach(const std::string& name, const control::Callback<api::Agent>& done);
  // Answers when an agent is up there; else, after a while, `otherwise` has to.
  void await_agent(const std::string& address, control::Callback<api::Agent> done,
                   std::function<void(uint64_t id)> otherwise);
  void answer(uint64_t id, const Result<api::Agent>& agent);

  const Registry& registry_;
  ingest::Ingest& ingest_;
  attach::Attach& devices_;
  asio::io_context& io_;
  std::mutex mutex_;
  std::vector<Pending> pending_;  // guarded by mutex_
  uint64_t next_id_ = 1;          // guarded by mutex_
};

}  // namespace collect::daemon
