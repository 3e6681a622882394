// Recordings that are started and stopped by request, with what they are to record.
#pragma once

#include <asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "daemon/collector/agents/registry.h"
#include "daemon/collector/detail/detail_control.h"
#include "daemon/collector/detail/filter_control.h"
#include "daemon/control/collector_api.h"
#include "daemon/control/request_checks.h"
#include "daemon/ingest/ingest.h"

namespace collect::daemon {

// What a recording is to hold: of a StartSession, or of a rule.
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

class RecordingControl {
 public:
  // Serves StartSessionRequest and StopSessionRequest. All outlive it; its timers run at `io`.
  RecordingControl(const Registry& registry, ingest::Ingest& ingest, DetailControl& detail,
                   FilterControl& filter, asio::io_context& io, control::Methods& methods);

  enum class IfRecording : uint8_t { kFail, kGoOn };
  void start_one(const ingest::AgentSnapshot& agent, const RecordingOptions& options,
                 IfRecording if_recording, control::Callback<api::Session> done);

 private:
  struct Task;
  void start(const api::StartSessionRequest& request,
             control::Callback<api::StartSessionResponse> done);
  // Answers when the files are sealed.
  void stop(const api::Selector& target, control::Callback<api::StopSessionResponse> done);
  void choose_functions(const std::shared_ptr<Task>& task);
  void set_detail(const std::shared_ptr<Task>& task, std::function<void(const Status&)> done);
  void began(const std::shared_ptr<Task>& task, const Status& chosen);
  void stop_later(const std::string& session, std::chrono::nanoseconds duration);

  const Registry& registry_;
  ingest::Ingest& ingest_;
  DetailControl& detail_;
  FilterControl& filter_;
  asio::io_context& io_;
};

}  // namespace collect::daemon
