#include "daemon/ctl/record/summary/run_sessions.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "daemon/ctl/control/messages/text.h"

namespace collect::ctl {
namespace {

using Clock = std::chrono::steady_clock;

// Looks grow rarer, so that none adds more than an eighth to what was waited for.
constexpr std::chrono::milliseconds kFirstLook{1};
constexpr std::chrono::milliseconds kLastLook{250};

// Changes whenever something moves.
std::string fingerprint(const RunView& view) {
  std::string text;
  for (const api::Agent& agent : view.agents) text += fmt::format("{},", agent.state());
  for (const api::Session& session : view.sessions) {
    text += fmt::format("{}:{}:{}:{};", session.state(), session.events(), session.detail_records(),
                        session.symbols());
  }
  return text;
}

bool ends_waiting(int signal) {
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
}

class Waiter {
 public:
  Waiter(Client& client, const SealWait& wait, JobSignals& signals, std::ostream& err)
      : client_(client), wait_(wait), signals_(signals), err_(err) {}

  RunSessions run() {
    while (true) {
      // Asked first: what a process ships after the collector has answered is in no view of it.
      const bool ships = wait_.any_ships && wait_.any_ships();
      Result<RunView> view = look_at_run(client_, wait_);
      if (!view.ok()) {
        result_.trouble = "lost the connection to the collector: " + view.error().message;
        return std::move(result_);
      }
      result_.agent_seen = result_.agent_seen || !view->agents.empty() || !view->sessions.empty();
      if (fingerprint(*view) != last_) {
        last_ = fingerprint(*view);
        last_change_ = Clock::now();
      }
      note_filters(*view);
      const bool done = !ships && is_done(*view);
      const std::string why_ended = why_storing_ended(*view);
      seal_orphans(*view);
      result_.sessions = std::move(view->sessions);
      if (done) return std::move(result_);
      if (!why_ended.empty()) {
        result_.trouble = "storing ended, so run does not wait for the rest: " + why_ended;
        return std::move(result_);
      }
      if (Clock::now() - last_change_ > kSealStallBound) {
        result_.trouble =
            fmt::format("no progress for {} s; the session was not sealed by its agent",
                        kSealStallBound.count() / 1000);
        return std::move(result_);
      }
      report_state();
      const auto waited =
          std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin_);
      if (ends_waiting(signals_.wait(std::clamp(waited / 8, kFirstLook, kLastLook)).number)) {
        result_.trouble = "stopped waiting for the rest of the recording";
        return std::move(result_);
      }
    }
  }

 private:
  // Agents of processes that ended long ago may be listed no more; their sessions are.
  void note_filters(const RunView& view) {
    for (const api::Agent& agent : view.agents) {
      if (agent.has_start_filter()) filters_[agent.name()] = agent.start_filter();
    }
    for (const api::Session& session : view.sessions) {
      if (session.has_start_filter()) filters_[session.agent()] = session.start_filter();
    }
    result_.filter = {};
    bool is_first = true;
    for (const auto& [agent, filter] : filters_) {
      if (result_.filter.error.empty()) result_.filter.error = filter.error();
      if (!filter.error().empty()) continue;
      const std::set<std::string> unmatched(filter.unmatched().begin(), filter.unmatched().end());
      if (is_first) result_.filter.unmatched = unmatched;
      std::erase_if(result_.filter.unmatched,
                    [&](const std::string& pattern) { return !unmatched.contains(pattern); });
      is_first = false;
    }
  }

  bool is_done(const RunView& view) const {
    if (view.agents.empty() && view.sessions.empty()) {
      return Clock::now() - begin_ > kConnectGrace;
    }
    const bool names_are_due = Clock::now() - last_change_ < kNamesBound;
    const auto waits_for_session = [this, names_are_due](const api::Session& session) {
      if (is_sealed(session))
        return names_are_due && session.symbols() == api::SYMBOLS_STATE_PENDING;
      return !(wait_.collector_stays && lives(session.pid()));
    };
    const auto waits_for_agent = [this](const api::Agent& agent) {
      // A link that broke shows in its session, if there is one.
      const bool linked = agent.state() == api::AGENT_STATE_CONNECTED ||
                          agent.state() == api::AGENT_STATE_RECORDING;
      return linked && !(wait_.collector_stays && lives(agent.pid()));
    };
    return std::none_of(view.sessions.begin(), view.sessions.end(), waits_for_session) &&
           std::none_of(view.agents.begin(), view.agents.end(), waits_for_agent);
  }

  // All sessions are sealed, and one of them failed, so that what a drain process still holds has
  // nowhere to go. Where there is room for it in another session, it comes at once.
  std::string why_storing_ended(const RunView& view) const {
    if (Clock::now() - last_change_ < kConnectGrace) return "";
    const bool is_over =
        std::all_of(view.sessions.begin(), view.sessions.end(), is_sealed) &&
        std::none_of(view.agents.begin(), view.agents.end(), [](const api::Agent& agent) {
          return agent.state() == api::AGENT_STATE_CONNECTED ||
                 agent.state() == api::AGENT_STATE_RECORDING;
        });
    if (!is_over) return "";
    const auto failed = std::find_if(
        view.sessions.begin(), view.sessions.end(), [this](const api::Session& session) {
          return session.state() == api::SESSION_STATE_FAILED && !lives(session.pid());
        });
    return failed == view.sessions.end() ? "" : failed->status();
  }

  // A process that crashed or was killed never comes back to resume: its session can be sealed now.
  void seal_orphans(const RunView& view) {
    if (wait_.agent_outlives && Clock::now() - last_change_ < kComeBackGrace) return;
    for (const api::Session& session : view.sessions) {
      if (session.state() != api::SESSION_STATE_INTERRUPTED || lives(session.pid())) continue;
      if (!stopped_.insert(session.name()).second) continue;
      // An error here is no loss: the session is then sealed when the collector decides so.
      (void)client_.stop_session(session.name());
    }
  }

  void report_state() {
    if (reported_ || Clock::now() - begin_ < kSealSilence) return;
    reported_ = true;
    const auto running = std::find_if(result_.sessions.begin(), result_.sessions.end(),
                                      [this](const api::Session& session) {
                                        return !is_sealed(session) && lives(session.pid());
                                      });
    if (running != result_.sessions.end()) {
      err_ << "collectctl: process " << running->pid()
           << " of this run still records; waiting for it, Ctrl-C stops waiting\n";
    } else {
      const bool all_stored =
          std::all_of(result_.sessions.begin(), result_.sessions.end(), is_sealed);
      err_ << (all_stored ? "collectctl: waiting for the names of functions; Ctrl-C stops waiting\n"
                          : "collectctl: waiting for the last events to be stored; Ctrl-C stops "
                            "waiting\n");
    }
    err_.flush();
  }

  bool lives(uint32_t pid) const {
    return pid != 0 && wait_.process_lives(static_cast<pid_t>(pid));
  }

  Client& client_;
  const SealWait& wait_;
  JobSignals& signals_;
  std::ostream& err_;
  RunSessions result_;
  std::map<std::string, api::StartFilter> filters_;  // by agent
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point last_change_ = begin_;
  std::string last_;
  std::set<std::string> stopped_;
  bool reported_ = false;
};

}  // namespace

Result<RunView> look_at_run(Client& client, const SealWait& wait) {
  RunView view;
  Result<std::vector<api::Agent>> agents = client.agents(wait.tag);
  if (!agents.ok()) return agents.error();
  Result<std::vector<api::Session>> sessions = client.sessions(wait.tag);
  if (!sessions.ok()) return sessions.error();
  std::set<std::string> names;  // of the agents that are meant, where it is by address
  for (const api::Agent& agent : *agents) {
    const bool is_there = wait.address.empty() ? agent.address().starts_with(wait.device)
                                               : agent.address() == wait.address;
    if (is_there) names.insert(agent.name());
  }
  const bool by_address = !wait.address.empty() || !wait.device.empty();
  // A filter matches other words too.
  const auto is_meant = [&](const auto& item, const std::string& agent) {
    if (wait.before.contains(item.name())) return false;
    if (by_address && !names.contains(agent)) return false;
    return !wait.address.empty() || item.tag() == wait.tag;
  };
  for (api::Agent& agent : *agents) {
    if (is_meant(agent, agent.name())) view.agents.push_back(std::move(agent));
  }
  for (api::Session& session : *sessions) {
    if (is_meant(session, session.agent())) view.sessions.push_back(std::move(session));
  }
  std::reverse(view.sessions.begin(), view.sessions.end());
  return view;
}

Result<std::set<std::string>> names_with_tag(const ControlTarget& control, const std::string& tag) {
  Client client(control);
  SealWait wait;
  wait.tag = tag;
  const Result<RunView> view = look_at_run(client, wait);
  if (!view.ok()) return view.error();
  std::set<std::string> names;
  for (const api::Agent& agent : view->agents) names.insert(agent.name());
  for (const api::Session& session : view->sessions) names.insert(session.name());
  return names;
}

RunSessions wait_until_sealed(Client& client, const SealWait& wait, JobSignals& signals,
                              std::ostream& err) {
  return Waiter(client, wait, signals, err).run();
}

}  // namespace collect::ctl
