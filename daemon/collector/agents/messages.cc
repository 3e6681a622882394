#include "daemon/collector/agents/messages.h"

#include <algorithm>
#include <chrono>

#include "daemon/attach/attach.h"
#include "daemon/collector/agents/session_message.h"
#include "formats/core/text/hex.h"
#include "formats/core/text/printable.h"
#include "formats/core/text/utf8.h"
#include "storage/manifest/manifest.h"

namespace collect::daemon {

using collect::to_message;

namespace {

constexpr std::string_view kAgentPrefix = "agents/";
constexpr std::string_view kSessionPrefix = "sessions/";

api::AgentState to_message(ingest::AgentState state) {
  switch (state) {
    case ingest::AgentState::kDialing:
      return api::AGENT_STATE_DIALING;
    case ingest::AgentState::kConnected:
      return api::AGENT_STATE_CONNECTED;
    case ingest::AgentState::kRecording:
      return api::AGENT_STATE_RECORDING;
    case ingest::AgentState::kDisconnected:
      return api::AGENT_STATE_DISCONNECTED;
    case ingest::AgentState::kGone:
      return api::AGENT_STATE_GONE;
  }
  return api::AGENT_STATE_UNSPECIFIED;
}

api::SessionState to_message(ingest::SessionState state) {
  switch (state) {
    case ingest::SessionState::kActive:
      return api::SESSION_STATE_ACTIVE;
    case ingest::SessionState::kInterrupted:
      return api::SESSION_STATE_INTERRUPTED;
    case ingest::SessionState::kSealing:
      return api::SESSION_STATE_SEALING;
    case ingest::SessionState::kComplete:
      return api::SESSION_STATE_COMPLETE;
    case ingest::SessionState::kRecovered:
      return api::SESSION_STATE_RECOVERED;
    case ingest::SessionState::kFailed:
      return api::SESSION_STATE_FAILED;
  }
  return api::SESSION_STATE_UNSPECIFIED;
}

api::DetailMode to_message(ingest::DetailMode mode) {
  switch (mode) {
    case ingest::DetailMode::kOff:
      return api::DETAIL_MODE_OFF;
    case ingest::DetailMode::kArmed:
      return api::DETAIL_MODE_ARMED;
    case ingest::DetailMode::kOn:
      return api::DETAIL_MODE_ON;
  }
  return api::DETAIL_MODE_UNSPECIFIED;
}

void add_parts(const storage::Manifest& manifest, api::Manifest& message) {
  for (const storage::ManifestThread& thread : manifest.threads) {
    api::ManifestThread* out = message.add_threads();
    out->set_id(thread.id);
    out->set_thread_id(thread.thread_id);
    out->set_name(thread.name);
    out->set_has_detail(thread.has_detail);
    out->set_events(thread.events);
    out->set_detail_records(thread.detail_records);
    out->set_lost_events(thread.lost_events);
    out->set_lost_detail_records(thread.lost_detail_records);
  }
  for (const storage::ModuleInfo& module : manifest.modules) {
    api::ManifestModule* out = message.add_modules();
    out->set_module_id(module.module_id);
    out->set_path(module.path);
    out->set_build_id(hex_bytes(module.build_id));
    out->set_base_address(module.base_address);
    out->set_size_bytes(module.size);
  }
  for (const storage::Gap& gap : manifest.gaps) {
    api::ManifestGap* out = message.add_gaps();
    out->set_thread(gap.thread);
    out->set_lane(std::string(storage::lane_name(gap.lane)));
    out->set_before_seq(gap.before_seq);
    out->set_lost(gap.lost);
    out->set_first_ns(gap.first_ns);
    out->set_last_ns(gap.last_ns);
    std::string reasons;
    for (const std::string& reason : storage::lost_reason_names(gap.reasons)) {
      reasons += (reasons.empty() ? "" : ", ") + reason;
    }
    out->set_reason(reasons);
  }
  for (const storage::Stall& stall : manifest.stalls) {
    api::ManifestStall* out = message.add_stalls();
    out->set_kind(std::string(storage::stall_kind_name(stall.kind)));
    if (stall.thread) out->set_thread(*stall.thread);
    out->set_first_ns(stall.first_ns);
    out->set_last_ns(stall.last_ns);
    out->set_stalled_ns(stall.stalled_ns);
    out->set_count(stall.count);
  }
  for (const storage::DetailWindow& window : manifest.detail_windows) {
    api::ManifestDetailWindow* out = message.add_detail_windows();
    out->set_mode(window.mode);
    out->set_start_ns(window.start_ns);
    out->set_end_ns(window.end_ns);
    out->set_pre_roll_from_ns(window.pre_roll_from_ns);
    out->set_pre_roll_records(window.pre_roll_records);
  }
}

}  // namespace

google::protobuf::Timestamp timestamp(ingest::SystemTime time) {
  const auto since_epoch =
      std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch());
  return timestamp_of(static_cast<uint64_t>(since_epoch.count()));
}

std::string agent_name(ingest::AgentId id) {
  return std::string(kAgentPrefix) + std::to_string(id);
}

api::Selector selector_of(const ingest::AgentSnapshot& agent) {
  api::Selector selector;
  selector.set_agent(agent_name(agent.id));
  return selector;
}

std::string_view bare_agent_name(std::string_view name) {
  if (name.starts_with(kAgentPrefix)) name.remove_prefix(kAgentPrefix.size());
  return name;
}

std::string_view bare_session_name(std::string_view name) {
  if (name.starts_with(kSessionPrefix)) name.remove_prefix(kSessionPrefix.size());
  return name;
}

std::string utf8_text(const std::string& text) {
  return is_utf8(text) ? text : printable(text);
}

api::StartFilter to_message(const ingest::StartFilter& filter) {
  api::StartFilter message;
  message.set_functions_matched(static_cast<uint32_t>(filter.functions));
  for (const std::string& pattern : filter.unmatched) message.add_unmatched(utf8_text(pattern));
  message.set_error(utf8_text(filter.error));
  return message;
}

api::Agent to_message(const ingest::AgentSnapshot& agent) {
  api::Agent message;
  message.set_name(agent_name(agent.id));
  message.set_state(to_message(agent.state));
  message.set_process_name(agent.process_name);
  message.set_pid(agent.pid);
  message.set_parent_pid(agent.parent_pid);
  message.set_device(device_name_of(agent.address));
  message.set_device_id(agent.device_id);
  message.set_device_model(agent.device_model);
  message.set_os(agent.os);
  message.set_arch(agent.arch);
  message.set_address(utf8_text(agent.address));
  if (!agent.session.empty()) message.set_session(std::string(kSessionPrefix) + agent.session);
  message.set_detail(to_message(agent.detail));
  message.set_tag(agent.tag);
  message.set_agent_version(agent.agent_version);
  if (agent.connected_at != ingest::SystemTime{}) {
    *message.mutable_connect_time() = timestamp(agent.connected_at);
  }
  message.set_status(utf8_text(agent.status));
  message.set_executable(agent.executable);
  message.set_reconnects(agent.reconnects);
  message.set_link_raw_bytes(agent.link_raw_bytes);
  message.set_link_sent_bytes(agent.link_sent_bytes);
  message.set_spooled_bytes(agent.spooled_bytes);
  for (const auto& [name, value] : agent.counters) {
    api::Counter* const counter = message.add_counters();
    counter->set_name(name);
    counter->set_value(value);
  }
  if (agent.start_filter) *message.mutable_start_filter() = to_message(*agent.start_filter);
  return message;
}

api::Device to_message(const attach::DeviceView& view) {
  api::Device message;
  message.set_name(std::string(kDevicePrefix) + utf8_text(view.device.serial));
  message.set_serial(utf8_text(view.device.serial));
  message.set_via(utf8_text(view.via));
  message.set_connection(utf8_text(view.device.connection));
  message.set_model(utf8_text(view.device.model));
  switch (view.state) {
    case attach::DeviceState::kServing:
      message.set_state(api::DEVICE_STATE_SERVING);
      break;
    case attach::DeviceState::kNoAgent:
      message.set_state(api::DEVICE_STATE_NO_AGENT);
      break;
    case attach::DeviceState::kBlocked:
      message.set_state(api::DEVICE_STATE_BLOCKED);
      break;
    case attach::DeviceState::kAbsent:
      message.set_state(api::DEVICE_STATE_ABSENT);
      break;
  }
  message.set_reported_state(utf8_text(view.device.reported_state));
  message.set_reason(utf8_text(view.device.reason));
  message.set_advice(utf8_text(view.device.advice));
  for (const std::string& route : view.device.routes) message.add_routes(utf8_text(route));
  for (const attach::EndpointView& endpoint : view.endpoints) {
    api::DeviceAgent* agent = message.add_agents();
    agent->set_socket(utf8_text(endpoint.name));
    agent->set_agent(endpoint.agent);
    agent->set_status(utf8_text(endpoint.status));
  }
  return message;
}

api::Session to_message(const ingest::SessionSnapshot& session) {
  api::Session message;
  message.set_name(std::string(kSessionPrefix) + session.name);
  message.set_state(to_message(session.state));
  message.set_path(utf8_text(session.directory));
  if (session.agent != 0) message.set_agent(agent_name(session.agent));
  message.set_process_name(session.process_name);
  message.set_pid(session.pid);
  message.set_device(device_name_of(session.route));
  message.set_device_id(session.device_id);
  message.set_tag(session.tag);
  *message.mutable_start_time() = timestamp(session.start_time);
  if (session.end_time != ingest::SystemTime{}) {
    *message.mutable_end_time() = timestamp(session.end_time);
  }
  message.set_threads(session.totals.threads);
  message.set_events(session.totals.events);
  message.set_detail_records(session.totals.detail_records);
  // Those of threads without a stream are in the health alone.
  message.set_lost_events(std::max(session.totals.lost_events, session.health.lost_events));
  message.set_lost_detail_records(session.totals.lost_detail_records);
  message.set_stall_count(session.totals.stalls.count);
  message.set_stalled_ns(session.totals.stalls.stalled_ns);
  message.set_page_wait_ns(session.totals.stalls.page_wait_ns);
  message.set_calls_left_out(session.totals.calls_left_out);
  if (session.start_filter) *message.mutable_start_filter() = to_message(*session.start_filter);
  message.set_late_ns(session.late_ns);
  message.set_losses_known(session.health.losses_known);
  if (ingest::is_over(session.state)) message.set_missing(utf8_text(session.health.missing));
  message.set_packed(session.packed);
  if (!session.packed) message.set_stored_bytes(session.totals.stored_bytes);
  message.set_container_bytes(session.totals.container_bytes);
  message.set_detail(to_message(session.detail));
  message.set_status(utf8_text(session.status));
  message.set_symbols(to_message(session.symbols));
  if (session.process_end.how != storage::ProcessEnd::How::kNotKnown) {
    *message.mutable_process_end() = to_message(session.process_end);
  }
  return message;
}

Result<api::Manifest> manifest_message(const std::string& session_name, std::string json) {
  Result<storage::Manifest> manifest = storage::manifest_from_json(json);
  if (!manifest.ok()) return manifest.error();
  api::Manifest message;
  message.set_session(std::string(kSessionPrefix) + session_name);
  message.set_format_version_major(2);
  message.set_format_version_minor(manifest->identity.version == atf::Version::kV1 ? 1 : 2);
  message.set_state(std::string(storage::session_state_name(manifest->state)));
  message.set_time_start_ns(manifest->time_start_ns);
  message.set_time_end_ns(manifest->time_end_ns);
  message.set_symbol_count(manifest->symbols.size());
  add_parts(*manifest, message);
  return message;
}

std::string device_name_of(const std::string& address) {
  const std::string serial = attach::serial_of(address);
  return serial.empty() ? "" : std::string(kDevicePrefix) + utf8_text(serial);
}

Error not_there(const ingest::AgentSnapshot& agent) {
  return {Code::kUnavailable, "does not answer yet: " + agent.status};
}

Error refusal(const wire::CommandResult& result) {
  return {Code::kUnsupported, result.error()};
}

wire::DetailMode to_wire(api::DetailMode mode) {
  switch (mode) {
    case api::DETAIL_MODE_ON:
      return wire::DETAIL_ON;
    case api::DETAIL_MODE_ARMED:
      return wire::DETAIL_ARMED;
    default:
      return wire::DETAIL_OFF;
  }
}

api::StoreStats to_message(const std::string& url, const upload::UploadStatus& status) {
  const auto time_of = [](uint64_t unix_ns) {
    return timestamp(ingest::SystemTime(std::chrono::duration_cast<ingest::SystemTime::duration>(
        std::chrono::nanoseconds(unix_ns))));
  };
  api::StoreStats message;
  message.set_url(url);
  message.set_sessions_pending(status.pending_sessions);
  message.set_bytes_pending(status.pending_bytes);
  if (status.oldest_unix_ns != 0) {
    *message.mutable_oldest_pending_time() = time_of(status.oldest_unix_ns);
  }
  message.set_sessions_committed(status.committed_sessions);
  message.set_bytes_committed(status.committed_bytes);
  message.set_bytes_sent(status.sent_bytes);
  message.set_sessions_removed(status.removed_sessions);
  message.set_bytes_removed(status.removed_bytes);
  message.set_sessions_refused(status.refused_sessions);
  message.set_runs_failed(status.failed_runs);
  for (const auto& [code, count] : status.retries) {
    api::StoreRetry& retry = *message.add_retries();
    retry.set_status(static_cast<uint32_t>(code));
    retry.set_count(count);
  }
  message.set_problem(status.problem);
  if (status.problem_since_unix_ns != 0) {
    *message.mutable_problem_time() = time_of(status.problem_since_unix_ns);
  }
  return message;
}

}  // namespace collect::daemon
