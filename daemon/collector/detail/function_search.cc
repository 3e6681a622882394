#include "daemon/collector/detail/function_search.h"

#include <utility>

namespace collect::daemon {

void FunctionSearch::find(const ingest::AgentSnapshot& agent,
                          std::function<Ids(const Modules&)> find,
                          ingest::Answer<std::vector<uint64_t>> done) {
  ingest_.modules(agent.process_id, [this, find = std::move(find),
                                     done = std::move(done)](Result<Modules> modules) {
    if (!modules.ok()) {
      done(modules.error());
      return;
    }
    lookups_.post([find, done, known = std::move(modules).value()] { done(find(known)); }, done);
  });
}

}  // namespace collect::daemon
