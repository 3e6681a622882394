// Which sealed sessions are read as a whole or removed right now, so that none is removed
// while it is converted, or converted while it is removed. Thread-safe.
#pragma once

#include <fmt/core.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "formats/core/result.h"

namespace collect::daemon {

class SessionUse {
 public:
  // `what` is for the sentence of the next who comes: "is being converted". kUnsupported: it is in
  // use. Given back when the last share of the result goes.
  Result<std::shared_ptr<void>> take(const std::string& name, const std::string& what) {
    const std::lock_guard lock(state_->mutex);
    const auto [at, is_free] = state_->used.emplace(name, what);
    if (!is_free) {
      return Error{Code::kUnsupported,
                   fmt::format("session \"{}\" {} right now; try again when that is done", name,
                               at->second)};
    }
    return std::shared_ptr<void>(nullptr, [state = state_, name](void*) {
      const std::lock_guard given_back(state->mutex);
      state->used.erase(name);
    });
  }

 private:
  struct State {
    std::mutex mutex;
    std::map<std::string, std::string> used;  // guarded by mutex; by name
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace collect::daemon
