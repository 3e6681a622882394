#include "daemon/web/live/live_view.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "daemon/web/limits.h"
#include "formats/core/text/lower_case.h"

namespace collect::web {
namespace {

namespace api = control::api;
using nlohmann::json;

constexpr std::string_view kSessionPrefix = "sessions/";

// "recording" of AGENT_STATE_RECORDING.
std::string word_of(std::string_view name, std::string_view prefix) {
  if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  std::string word = lower_case(name);
  std::replace(word.begin(), word.end(), '_', ' ');
  return word;
}

std::string word_of(api::DetailMode mode) {
  return word_of(api::DetailMode_Name(mode), "DETAIL_MODE_");
}

int64_t milliseconds(const google::protobuf::Timestamp& time) {
  return time.seconds() * 1000 + time.nanos() / 1'000'000;
}

json show(const api::Agent& agent) {
  return {{"name", agent.name()},
          {"state", word_of(api::AgentState_Name(agent.state()), "AGENT_STATE_")},
          {"status", agent.status()},
          {"process", agent.process_name()},
          {"pid", agent.pid()},
          {"device", agent.device_model().empty() ? agent.device_id() : agent.device_model()},
          {"address", agent.address()},
          {"session", bare_session_name(agent.session())},
          {"detail", word_of(agent.detail())},
          {"spooled_bytes", agent.spooled_bytes()},
          {"reconnects", agent.reconnects()}};
}

json show(const api::Device& device) {
  return {{"serial", device.serial()},
          {"via", device.via()},
          {"model", device.model()},
          {"state", word_of(api::DeviceState_Name(device.state()), "DEVICE_STATE_")},
          {"reason", device.reason()},
          {"advice", device.advice()},
          {"agents", device.agents_size()}};
}

// Those that `first` likes come first, in their order, and at most so many.
template <class Item, class First>
size_t keep(std::vector<Item>& items, size_t most, First first) {
  if (items.size() <= most) return 0;
  std::stable_partition(items.begin(), items.end(), first);
  const size_t left_out = items.size() - most;
  items.resize(most);
  return left_out;
}

}  // namespace

std::string_view bare_session_name(std::string_view name) {
  if (name.starts_with(kSessionPrefix)) name.remove_prefix(kSessionPrefix.size());
  return name;
}

std::string full_session_name(std::string_view bare) {
  return std::string(kSessionPrefix) + std::string(bare);
}

bool is_over(const api::Session& session) {
  return session.state() == api::SESSION_STATE_COMPLETE ||
         session.state() == api::SESSION_STATE_RECOVERED ||
         session.state() == api::SESSION_STATE_FAILED;
}

std::string LiveView::look(Clock::time_point now) {
  const api::Selector all;
  std::vector<api::Session> sessions = collector_.sessions(all);
  std::vector<api::Agent> agents = collector_.agents(all);
  std::vector<api::Device> devices = collector_.devices("");
  json view = {{"version", 1}};
  view["sessions_left_out"] =
      keep(sessions, kMaxShownSessions, [](const api::Session& one) { return !is_over(one); });
  view["agents_left_out"] = keep(agents, kMaxShownAgents, [](const api::Agent& one) {
    return one.state() != api::AGENT_STATE_GONE;
  });
  view["devices_left_out"] = keep(devices, kMaxShownDevices, [](const auto&) { return true; });
  json& shown = view["sessions"] = json::array();
  for (const api::Session& session : sessions) shown.push_back(show(session, now));
  std::erase_if(seen_, [now](const auto& one) { return one.second.at != now; });
  json& shown_agents = view["agents"] = json::array();
  for (const api::Agent& agent : agents) shown_agents.push_back(web::show(agent));
  json& shown_devices = view["devices"] = json::array();
  for (const api::Device& device : devices) shown_devices.push_back(web::show(device));
  return view.dump(-1, ' ', false, json::error_handler_t::replace);
}

json LiveView::show(const api::Session& session, Clock::time_point now) {
  const bool over = is_over(session);
  const Seen& seen = measure(session, now);
  json shown = {{"name", bare_session_name(session.name())},
                {"state", word_of(api::SessionState_Name(session.state()), "SESSION_STATE_")},
                {"sealed", over},
                // What is wrong with it, or what happened last.
                {"health", over ? session.missing() : session.status()},
                {"status", session.status()},
                {"process", session.process_name()},
                {"pid", session.pid()},
                {"tag", session.tag()},
                {"device", session.device_id()},
                {"threads", session.threads()},
                {"events", session.events()},
                {"events_per_second", over ? 0 : seen.events_per_second},
                {"detail_records", session.detail_records()},
                {"lost_events", session.lost_events()},
                {"lost_detail_records", session.lost_detail_records()},
                {"losses_known", session.losses_known()},
                {"stalls", session.stall_count()},
                {"stalled_ns", session.stalled_ns()},
                {"bytes", session.stored_bytes() + session.container_bytes()},
                {"bytes_per_second", over ? 0 : seen.bytes_per_second},
                {"detail", word_of(session.detail())},
                {"names", word_of(api::SymbolsState_Name(session.symbols()), "SYMBOLS_STATE_")},
                {"start_ms", milliseconds(session.start_time())}};
  if (session.has_end_time()) shown["end_ms"] = milliseconds(session.end_time());
  return shown;
}

LiveView::Seen& LiveView::measure(const api::Session& session, Clock::time_point now) {
  const uint64_t bytes = session.stored_bytes() + session.container_bytes();
  const auto [at, is_new] = seen_.try_emplace(session.name());
  Seen& seen = at->second;
  const double seconds = std::chrono::duration<double>(now - seen.at).count();
  const auto rate = [seconds](uint64_t before, uint64_t after) {
    return after <= before ? 0
                           : static_cast<uint64_t>(static_cast<double>(after - before) / seconds);
  };
  if (!is_new && seconds > 0) {
    seen.events_per_second = rate(seen.events, session.events());
    seen.bytes_per_second = rate(seen.bytes, bytes);
  }
  seen.events = session.events();
  seen.bytes = bytes;
  seen.at = now;
  return seen;
}

}  // namespace collect::web
