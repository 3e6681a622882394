#include "daemon/collector/function_search.h"

#include <asio/post.hpp>
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
    asio::post(lookups_, [find, done, known = std::move(modules).value()] { done(find(known)); });
  });
}

}  // namespace collect::daemon
