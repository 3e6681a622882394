// A connection to a collector's control plane. Every call is bounded: by a deadline, or, for the
// watches, by their callback. gRPC is behind ControlChannel.
//
// One thread at a time.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "collect/control/v1/control.pb.h"
#include "daemon/ctl/control/connection/control_target.h"
#include "formats/core/result.h"

namespace collect::ctl {

namespace api = ::collect::control::v1;

// Starting, stopping and detaching wait for agents and disks, everything else answers at once.
inline constexpr std::chrono::seconds kQuickDeadline{10};
inline constexpr std::chrono::seconds kSlowDeadline{120};
inline constexpr std::chrono::hours kCopyDeadline{1};  // of a whole session

class Client {
 public:
  // Dials lazily: a wrong address, or a file that can't be read, shows in the first call.
  explicit Client(const ControlTarget& target);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  const std::string& address() const { return address_; }

  // Every page. A word means what Selector.any does; empty: all.
  Result<std::vector<api::Agent>> agents(const std::string& word);
  Result<std::vector<api::Session>> sessions(const std::string& word);
  Result<api::ListDevicesResponse> devices(const std::string& match);
  Result<api::Session> session(const std::string& name);
  Result<api::Agent> attach(const std::string& address);
  Result<api::Agent> detach(const std::string& name);
  Result<api::ListThreadsResponse> threads(const std::string& agent);
  Result<api::StartSessionResponse> start_session(const api::StartSessionRequest& request);
  Result<api::StopSessionResponse> stop_session(const std::string& word);
  Result<api::Manifest> manifest(const std::string& name);
  Result<api::ListFilesResponse> files(const std::string& session);  // every page
  // Hands over the file from `offset` on, in order, each chunk checked; ends when `on_data` fails.
  // kDamaged: what came is not what was sent.
  Result<api::DownloadEnd> download(const std::string& session, const std::string& path,
                                    uint64_t offset,
                                    const std::function<Status(const std::string&)>& on_data);
  // Returns when the new session is there; ending the program ends the conversion.
  Result<api::ConversionEnd> convert_session(
      const api::ConvertSessionRequest& request,
      const std::function<void(const api::ConvertSessionProgress&)>& on_progress);
  Result<api::Session> snapshot_session(const std::string& name);
  Result<api::Session> pack_session(const std::string& name);
  Result<api::Session> unpack_session(const std::string& name);
  Result<api::DeleteSessionResponse> delete_session(const std::string& name);
  Result<api::SetFunctionFilterResponse> set_function_filter(
      const api::SetFunctionFilterRequest& request);
  Result<api::SetTriggersResponse> set_triggers(const api::SetTriggersRequest& request);
  Result<api::GetTriggersResponse> triggers(const std::string& word);
  Result<api::ArmDetailResponse> arm_detail(const api::ArmDetailRequest& request);
  Result<api::StartDetailResponse> start_detail(const api::StartDetailRequest& request);
  Result<api::StopDetailResponse> stop_detail(const api::StopDetailRequest& request);
  Result<api::AnnotateResponse> annotate(const std::string& word, const std::string& text);
  Result<api::Rules> rules();
  Result<api::Rules> set_rules(const api::SetRulesRequest& request);
  Result<api::Stats> stats(std::chrono::milliseconds deadline = kQuickDeadline);

  // Run until the stream ends or the callback returns false, which is no error.
  Status watch_agents(const std::string& word,
                      const std::function<bool(const api::AgentEvent&)>& on_event);
  Status watch_devices(const std::string& match,
                       const std::function<bool(const api::DeviceEvent&)>& on_event);
  Status watch_session(const std::string& name, std::chrono::milliseconds interval,
                       const std::function<bool(const api::Session&)>& on_state);
  // A stop ends it from another thread.
  Status watch_calls(const api::WatchCallsRequest& request,
                     const std::function<bool(const api::CallBatch&)>& on_batch,
                     const std::stop_token& stop = {});

 private:
  struct Connection;
  const std::string address_;
  const std::unique_ptr<Connection> connection_;
};

}  // namespace collect::ctl
