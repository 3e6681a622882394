// Recordings that are started and stopped by request, with what they are to record.
#pragma once

#include <asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "daemon/collector/agents/registry.h"
#include "daemon/collector/detail/detail_control.h"
#include "daemon/collector/detail/filter_control.h"
#include "daemon/collector/detail/recording_options.h"
#include "daemon/control/collector_api.h"
#include "daemon/ingest/ingest.h"

namespace collect::daemon {

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
