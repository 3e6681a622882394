// Which functions agents record at all: patterns become ids, ids become commands, part after part.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "daemon/collector/agents/registry.h"
#include "daemon/collector/detail/function_search.h"
#include "daemon/control/collector_api.h"
#include "daemon/ingest/ingest.h"
#include "formats/core/task_threads.h"

namespace collect::daemon {

// Agents whose start filter is being looked up, or waits for that; later ones get none.
inline constexpr uint32_t kMaxStartFilters = 1'024;

class FilterControl {
 public:
  // Serves SetFunctionFilterRequest. All outlive it.
  FilterControl(const Registry& registry, ingest::Ingest& ingest, FunctionSearch& functions,
                control::Methods& methods);

  void set(const api::SetFunctionFilterRequest& request,
           control::Callback<api::SetFunctionFilterResponse> done);
  // Until the agent is given another filter.
  void record_nothing(const ingest::AgentSnapshot& agent, std::function<void(const Status&)> done);
  // The agent was started with patterns. Unlike those of set() they are for all processes that may
  // come: one that matches nothing here is no error here, and is passed on.
  void start_with(const ingest::AgentSnapshot& agent, ingest::FilterRequest wanted);

  void join() { start_filters_.join(); }  // after FunctionSearch::stop()

 private:
  struct Call;
  struct Task;
  void send(const std::shared_ptr<Call>& call, const ingest::AgentSnapshot& agent,
            std::vector<uint64_t> ids);
  void send_part(const std::shared_ptr<Task>& task, uint32_t part);
  Result<std::vector<uint64_t>> start_ids(const ingest::FilterRequest& wanted,
                                          wire::SetFunctionFilter::Mode& mode,
                                          ingest::StartFilter& outcome) const;

  const Registry& registry_;
  ingest::Ingest& ingest_;
  FunctionSearch& functions_;
  std::atomic<uint32_t> start_filters_waiting_{0};
  // Agents ask for filters as they start: not where people wait for their answers.
  TaskThreads start_filters_{"start filters", 1};
};

}  // namespace collect::daemon
