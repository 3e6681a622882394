#include "daemon/ctl/record/phones/waiting_io.h"

#include <fmt/core.h>

namespace collect::ctl {

Status WaitingIo::wait(const Predicate& is_done, std::chrono::milliseconds bound,
                       const std::string& what) {
  const auto deadline = std::chrono::steady_clock::now() + bound;
  while (!is_done()) {
    if (interrupted_ && interrupted_()) return Error{Code::kCancelled, "interrupted"};
    if (std::chrono::steady_clock::now() > deadline) {
      return Error{Code::kUnavailable,
                   fmt::format("{}: no answer within {} s", what, bound.count() / 1000)};
    }
    io_.run_one_for(kInterruptionLook);
  }
  return {};
}

}  // namespace collect::ctl
