// Finds functions by name in the modules of agents. Symbol files are read by child processes, so it
// takes its time: on a thread of its own, where no one else waits.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "daemon/collector/detail/function_patterns.h"
#include "daemon/ingest/ingest.h"
#include "daemon/symbolize/symbolizer.h"
#include "formats/core/task_threads.h"

namespace collect::daemon {

class FunctionSearch {
 public:
  // Both outlive it.
  FunctionSearch(ingest::Ingest& ingest, const symbolize::Symbolizer& symbolizer)
      : ingest_(ingest), symbolizer_(symbolizer) {}

  using Modules = std::vector<storage::ModuleInfo>;
  using Ids = Result<std::vector<uint64_t>>;

  // Answers with what `find` makes of the agent's modules, on the thread of the searches.
  void find(const ingest::AgentSnapshot& agent, std::function<Ids(const Modules&)> find,
            ingest::Answer<std::vector<uint64_t>> done);

  // As FunctionPatterns::resolve() and match(), on the caller's thread.
  Ids resolve(const FunctionPatterns& patterns, const Modules& modules, size_t most) const {
    return patterns.resolve(modules, symbolizer_, stopping_, most);
  }
  Result<FunctionPatterns::Matched> match(const FunctionPatterns& patterns, const Modules& modules,
                                          size_t most) const {
    return patterns.match(modules, symbolizer_, stopping_, most);
  }

  // No function is looked up any more: what searches still ends soon.
  void stop() { stopping_ = true; }
  bool is_stopping() const { return stopping_; }
  void join() { lookups_.join(); }  // after stop()

 private:
  ingest::Ingest& ingest_;
  const symbolize::Symbolizer& symbolizer_;
  std::atomic<bool> stopping_{false};
  TaskThreads lookups_{"lookups", 1};
};

}  // namespace collect::daemon
