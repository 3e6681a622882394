// AttachProcess and DetachProcess: the agent into a process of this machine that runs, with jumps
// in its code. What `collectctl attach` does, for clients of the control plane; the recording is
// controlled as any other.
//
// The work is done by a thread of its own, one process after the other: it stops the process's
// threads, and waits for them.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "daemon/collector/agents/registry.h"
#include "daemon/control/collector_api.h"
#include "formats/core/result.h"
#include "formats/core/task_threads.h"

namespace collect::daemon {

// Requests that wait or are carried out; one more is refused.
inline constexpr uint32_t kMaxProcessAttaches = 16;
// How long the agent may take to connect once it is in the process.
inline constexpr std::chrono::seconds kAttachedAgentWait{10};

class ProcessAttach {
 public:
  struct Options {
    std::string ingest;  // where agents are to connect
    bool asks_for_tls = false;
    std::string token_file;  // that agents read; empty: no token is asked for
  };
  // Serves CallOf<AttachProcessRequest> and CallOf<DetachProcessRequest>. All outlive it.
  ProcessAttach(const Registry& registry, Options options, control::Methods& methods);

  // What waits is refused, and what is under way ends early. Returns when it has.
  void stop();

 private:
  template <class Request, class Response>
  void serve(control::Methods& methods, Result<Response> (ProcessAttach::*act)(const Request&));
  Result<api::AttachProcessResponse> attach(const api::AttachProcessRequest& request);
  Result<api::DetachProcessResponse> detach(const api::DetachProcessRequest& request);
  Result<api::Agent> connected_agent(uint32_t pid, const std::string& tag) const;

  const Registry& registry_;
  const Options options_;
  const std::string token_file_;  // absolute
  std::atomic<bool> is_stopping_{false};
  std::atomic<uint32_t> waiting_{0};
  TaskThreads thread_{"attach process", 1};
};

}  // namespace collect::daemon
