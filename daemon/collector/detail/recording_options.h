// What a recording is to hold: of a StartSession, or of a rule.
#pragma once

#include <chrono>
#include <optional>

#include "collect/control/v1/control.pb.h"
#include "daemon/control/request_checks.h"

namespace collect::daemon {

namespace api = ::collect::control::v1;

struct RecordingOptions {
  std::optional<api::FunctionFilter> functions;  // absent: those of the agent
  api::DetailOptions detail;
  std::chrono::nanoseconds duration{0};  // 0: it does not stop by itself

  // `request` was checked: StartSessionRequest or Rule.
  template <class Request>
  static RecordingOptions of(const Request& request) {
    RecordingOptions options;
    if (request.has_functions()) options.functions = request.functions();
    options.detail = request.detail();
    options.duration = std::chrono::nanoseconds(control::nanoseconds_of(request.duration()));
    return options;
  }

  bool has_detail() const { return detail.mode() > api::DETAIL_MODE_OFF; }
  bool needs_modules() const { return functions || !detail.functions().empty(); }
};

}  // namespace collect::daemon
