// Detail recording: which agents, threads and functions are meant, and what each agent answered.
#pragma once

#include <memory>
#include <vector>

#include "daemon/collector/agents/registry.h"
#include "daemon/collector/detail/function_search.h"
#include "daemon/control/collector_api.h"
#include "daemon/ingest/ingest.h"

namespace collect::daemon {

class DetailControl {
 public:
  // Serves control::DetailCommand and ListThreadsRequest. All outlive it.
  DetailControl(const Registry& registry, ingest::Ingest& ingest, FunctionSearch& functions,
                control::Methods& methods);

  void set(const control::DetailCommand& wanted,
           control::Callback<std::vector<api::DetailOutcome>> done);

 private:
  struct Call;
  struct Command;
  void find_threads(const std::shared_ptr<Command>& command);
  void find_functions(const std::shared_ptr<Command>& command);
  void send(const std::shared_ptr<Command>& command);

  const Registry& registry_;
  ingest::Ingest& ingest_;
  FunctionSearch& functions_;
};

}  // namespace collect::daemon
