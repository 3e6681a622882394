// Triggers: patterns become functions, the session's writer looks for them among what arrives (its
// peer for counters), and what is seen becomes detail and a marker.
#pragma once

#include <asio/io_context.hpp>
#include <memory>
#include <string>

#include "daemon/collector/agents/registry.h"
#include "daemon/collector/detail/detail_control.h"
#include "daemon/collector/detail/function_search.h"
#include "daemon/collector/detail/trigger_book.h"
#include "daemon/control/collector_api.h"
#include "daemon/ingest/ingest.h"

namespace collect::daemon {

class TriggerControl {
 public:
  // Serves SetTriggersRequest and GetTriggersRequest. All outlive it; what is seen is acted on at
  // `io`.
  TriggerControl(const Registry& registry, ingest::Ingest& ingest, FunctionSearch& functions,
                 DetailControl& detail, asio::io_context& io, control::Methods& methods);

  // The session has ended, and its triggers with it.
  void forget(const std::string& session) { book_.forget(session); }

 private:
  struct Task;
  void set(const api::SetTriggersRequest& request,
           control::Callback<api::SetTriggersResponse> done);
  Result<api::GetTriggersResponse> get(const api::GetTriggersRequest& request) const;
  void find_functions(const std::shared_ptr<Task>& task);
  void arm(const std::shared_ptr<Task>& task);
  void watch(const std::shared_ptr<Task>& task);
  void fire(const ingest::AgentSnapshot& agent, const api::Trigger& trigger,
            const ingest::SeenEvent& seen);
  void end_detail(const ingest::AgentSnapshot& agent, const api::Trigger& trigger);

  const Registry& registry_;
  ingest::Ingest& ingest_;
  FunctionSearch& functions_;
  DetailControl& detail_;
  asio::io_context& io_;
  TriggerBook book_;
};

}  // namespace collect::daemon
