#include "daemon/collector/agents/registry.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "daemon/collector/agents/messages.h"
#include "daemon/control/service/selector.h"
#include "storage/model/session_layout.h"

namespace collect::daemon {
namespace {

constexpr size_t kNamedInMessage = 8;

std::optional<uint64_t> number_of(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

bool is_recorded(const ingest::SessionSnapshot& session) {
  const std::string_view name = session.name;
  const auto parts = storage::parse_session_name(name.substr(0, name.find('/')));
  return !parts || parts->is_recorded();
}

// A session is before those that were made of it, which are as old.
bool is_newer(const ingest::SessionSnapshot& a, const ingest::SessionSnapshot& b) {
  return std::make_tuple(a.start_time, is_recorded(a), std::string_view(a.name)) >
         std::make_tuple(b.start_time, is_recorded(b), std::string_view(b.name));
}

}  // namespace

Registry::Change Registry::put(const ingest::AgentSnapshot& agent) {
  std::lock_guard lock(mutex_);
  const bool is_new = agents_.insert_or_assign(agent.id, agent).second;
  if (agent.state == ingest::AgentState::kGone) forget_old_agents();
  return is_new ? Change::kAdded : Change::kChanged;
}

void Registry::put(const ingest::SessionSnapshot& session) {
  std::lock_guard lock(mutex_);
  const auto [at, is_new] = sessions_.try_emplace(session.name, session);
  if (!is_new) {
    const ingest::SessionSnapshot known = std::exchange(at->second, session);
    at->second.symbols = std::max(known.symbols, session.symbols);
    at->second.packed = known.packed;
    if (known.packed) at->second.totals.container_bytes = known.totals.container_bytes;
  }
  if (is_over(session.state)) forget_old_sessions();
}

void Registry::set_symbols(const std::string& name, storage::SymbolsState state) {
  std::lock_guard lock(mutex_);
  const auto found = sessions_.find(name);
  if (found != sessions_.end()) found->second.symbols = state;
}

void Registry::set_packed(const std::string& name, bool packed, uint64_t container_bytes) {
  std::lock_guard lock(mutex_);
  const auto found = sessions_.find(name);
  if (found == sessions_.end()) return;
  found->second.packed = packed;
  found->second.totals.container_bytes = container_bytes;
}

Result<ingest::AgentSnapshot> Registry::remove_agent(ingest::AgentId id) {
  std::lock_guard lock(mutex_);
  const auto found = agents_.find(id);
  if (found == agents_.end()) return Error{Code::kNotFound, agent_name(id) + " is not known"};
  ingest::AgentSnapshot agent = std::move(found->second);
  agents_.erase(found);
  return agent;
}

void Registry::remove_session(const std::string& name) {
  std::lock_guard lock(mutex_);
  sessions_.erase(name);
}

void Registry::forget_old_agents() {
  size_t ended = 0;
  for (const auto& [id, agent] : agents_) ended += agent.state == ingest::AgentState::kGone;
  for (auto at = agents_.begin(); ended > kMaxEndedAgents && at != agents_.end();) {
    const bool is_gone = at->second.state == ingest::AgentState::kGone;
    at = is_gone ? agents_.erase(at) : std::next(at);
    ended -= is_gone;
  }
}

void Registry::forget_old_sessions() {
  if (sessions_.size() <= kMaxEndedSessions) return;
  std::vector<std::map<std::string, ingest::SessionSnapshot>::iterator> ended;
  for (auto at = sessions_.begin(); at != sessions_.end(); ++at) {
    if (is_over(at->second.state)) ended.push_back(at);
  }
  if (ended.size() <= kMaxEndedSessions) return;
  const auto oldest = std::min_element(
      ended.begin(), ended.end(), [](auto a, auto b) { return is_newer(b->second, a->second); });
  sessions_.erase(*oldest);
}

std::vector<ingest::AgentSnapshot> Registry::agents() const {
  std::lock_guard lock(mutex_);
  std::vector<ingest::AgentSnapshot> all;
  all.reserve(agents_.size());
  for (const auto& [id, agent] : agents_) all.push_back(agent);
  return all;
}

std::vector<ingest::SessionSnapshot> Registry::sessions() const {
  std::vector<ingest::SessionSnapshot> all;
  {
    std::lock_guard lock(mutex_);
    all.reserve(sessions_.size());
    for (const auto& [name, session] : sessions_) all.push_back(session);
  }
  std::sort(all.begin(), all.end(), is_newer);
  return all;
}

std::string Registry::agent_list() const {
  std::string list;
  size_t named = 0;
  for (const auto& [id, agent] : agents_) {
    if (agent.state == ingest::AgentState::kGone) continue;
    if (++named > kNamedInMessage) return list + ", …";
    list += fmt::format("{}{} ({})", list.empty() ? "" : ", ", agent_name(id),
                        agent.process_name.empty() ? agent.address : agent.process_name);
  }
  return list.empty() ? "none" : list;
}

std::string Registry::session_list() const {
  std::string list;
  size_t named = 0;
  for (auto at = sessions_.rbegin(); at != sessions_.rend(); ++at) {
    if (++named > kNamedInMessage) return list + ", …";
    list += (list.empty() ? "" : ", ") + at->first;
  }
  return list.empty() ? "none" : list;
}

Result<ingest::AgentSnapshot> Registry::agent(std::string_view name) const {
  if (name.empty()) {
    auto connected = targets({});
    if (!connected.ok()) return connected.error();
    if (connected->size() == 1) return std::move(connected->front());
    std::lock_guard lock(mutex_);
    return Error{Code::kInvalidArgument, "name an agent; there are: " + agent_list()};
  }
  std::lock_guard lock(mutex_);
  const auto id = number_of(bare_agent_name(name));
  const auto found = id ? agents_.find(*id) : agents_.end();
  if (found != agents_.end()) return found->second;
  return Error{Code::kNotFound, fmt::format("no agent \"{}\"; there are: {}", name, agent_list())};
}

Result<ingest::AgentSnapshot> Registry::agent_to_detach(std::string_view name) const {
  Result<ingest::AgentSnapshot> named = agent(name);
  if (named.ok()) return named;
  std::vector<ingest::AgentSnapshot> dialled = agents();
  std::erase_if(dialled, [name](const auto& one) {
    return one.address != name || one.state == ingest::AgentState::kGone;
  });
  // For a moment, the process that answered is beside the address that was dialled.
  const auto answered = std::find_if(dialled.begin(), dialled.end(), [](const auto& one) {
    return one.state != ingest::AgentState::kDialing;
  });
  if (answered != dialled.end()) return *answered;
  if (!dialled.empty()) return dialled.front();
  api::Selector word;
  word.set_any(std::string(name));
  const auto meant = targets(word);
  if (!meant.ok()) return named;
  if (meant->size() == 1) return meant->front();
  return Error{Code::kInvalidArgument,
               fmt::format("\"{}\" means {} agents: name one, as in agents/{}", name, meant->size(),
                           meant->front().id)};
}

Result<ingest::SessionSnapshot> Registry::session(std::string_view name) const {
  std::lock_guard lock(mutex_);
  if (name.empty()) {
    const ingest::SessionSnapshot* newest = nullptr;
    for (const auto& [key, session] : sessions_) {
      if (newest == nullptr || is_newer(session, *newest)) newest = &session;
    }
    if (newest != nullptr) return *newest;
    return Error{Code::kNotFound, "there is no session yet"};
  }
  const auto found = sessions_.find(std::string(bare_session_name(name)));
  if (found != sessions_.end()) return found->second;
  return Error{Code::kNotFound,
               fmt::format("no session \"{}\"; there are: {}", name, session_list())};
}

Result<std::vector<ingest::AgentSnapshot>> Registry::recording_targets(
    const api::Selector& target) const {
  auto meant = targets(target);
  if (!meant.ok() || !control::is_empty(target)) return meant;
  std::erase_if(*meant, [](const ingest::AgentSnapshot& agent) {
    return agent.state != ingest::AgentState::kRecording &&
           agent.state != ingest::AgentState::kDisconnected;
  });
  if (meant->empty()) return Error{Code::kNotFound, "no session records now"};
  return meant;
}

Result<std::vector<ingest::AgentSnapshot>> Registry::targets(const api::Selector& target) const {
  const bool is_for_all = control::is_empty(target);
  std::lock_guard lock(mutex_);
  std::vector<ingest::AgentSnapshot> found;
  for (const auto& [id, agent] : agents_) {
    const bool is_meant = is_for_all ? is_up(agent) : control::matches(to_message(agent), target);
    if (is_meant) found.push_back(agent);
  }
  // A number that is a pid, or the like: then it is not the agent of that number.
  if (const auto id = number_of(target.any()); id && found.size() > 1) {
    std::erase_if(found, [id](const auto& agent) { return agent.id == *id; });
  }
  // If a word means several processes, only the living ones.
  if (std::any_of(found.begin(), found.end(), is_up)) {
    std::erase_if(found, [](const auto& agent) { return !is_up(agent); });
  }
  if (!found.empty()) return found;
  if (is_for_all) {
    return Error{Code::kNotFound, "no agent is connected; known: " + agent_list()};
  }
  return Error{Code::kNotFound,
               fmt::format("no agent has {}; agents: {}; sessions: {}", control::text_of(target),
                           agent_list(), session_list())};
}

}  // namespace collect::daemon
