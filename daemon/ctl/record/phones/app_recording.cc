#include "daemon/ctl/record/phones/app_recording.h"

#include <algorithm>
#include <utility>

#include "daemon/ctl/control/messages/text.h"

namespace collect::ctl {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kStep{20};

}  // namespace

bool Interruption::look() {
  for (Signal signal = signals_.wait(std::chrono::milliseconds(0)); !seen_ && signal.number != 0;
       signal = signals_.wait(std::chrono::milliseconds(0))) {
    seen_ = signal.number != SIGCHLD;
  }
  return seen_;
}

void AppRecording::say(const std::string& sentence) {
  err_ << "collectctl: " << sentence << "\n";
  err_.flush();
}

void AppRecording::set_limits(const AgentSettings& agent) {
  if (!agent.max_time || agent.start_idle) return;
  const auto longest = select::parse_duration(*agent.max_time);
  if (longest.ok()) longest_ = *longest;
}

// The collector finds the agent by itself, at its next search; asked, at once.
void AppRecording::attach_once() {
  const std::string address = attach_asked_ ? "" : app_.agent_address();
  if (address.empty()) return;
  attach_asked_ = true;
  if (wait_.tag.empty()) wait_.address = address;
  (void)collector_.attach(address);
}

bool AppRecording::look() {
  if (wait_.tag.empty() && wait_.address.empty()) return true;  // no process is known yet
  const Result<RunView> view = look_at_run(collector_, wait_);
  if (!view.ok()) return false;
  const bool was_seen = agent_seen_;
  for (const api::Agent& agent : view->agents) {
    // One that is away may be of a process that ended before.
    agent_seen_ = agent_seen_ || agent.state() == api::AGENT_STATE_CONNECTED ||
                  agent.state() == api::AGENT_STATE_RECORDING ||
                  agent.state() == api::AGENT_STATE_GONE;
    if (!starts_idle_ || agent.state() != api::AGENT_STATE_CONNECTED) continue;
    api::StartSessionRequest start;
    start.mutable_target()->set_agent(agent.name());
    starts_idle_ = !collector_.start_session(start).ok();
  }
  const std::vector<api::Session>& sessions = view->sessions;
  agent_seen_ =
      agent_seen_ || std::any_of(sessions.begin(), sessions.end(), [](const api::Session& session) {
        return session.state() != api::SESSION_STATE_INTERRUPTED;
      });
  if (agent_seen_ && !was_seen) say("the agent is connected; Ctrl-C ends the recording");
  any_session_ = !sessions.empty();
  all_sealed_ = !sessions.empty() && std::all_of(sessions.begin(), sessions.end(), is_sealed);
  const auto any = [&sessions](const auto& is) {
    return std::any_of(sessions.begin(), sessions.end(), is);
  };
  const bool agent_is_away = any([](const api::Session& session) {
    return session.state() == api::SESSION_STATE_INTERRUPTED;
  });
  if (!agent_is_away || was_away_) agent_there_ = Clock::now();
  // If a process was killed, nothing says how it ended.
  const bool is_lost = any([](const api::Session& session) {
    return session.state() == api::SESSION_STATE_RECOVERED && !session.has_process_end();
  });
  const bool goes_on = any([](const api::Session& session) { return !session.has_process_end(); });
  sealed_end_ = is_lost ? End::kAgentLost : goes_on ? End::kRecordingEnded : End::kAppEnded;
  return true;
}

void AppRecording::say_if_away() {
  if (app_.is_away() != was_away_) {
    was_away_ = app_.is_away();
    say(printable(app_.serial()) +
        (was_away_ ? " is away; the recording continues when it is back" : " is back"));
  }
  const bool is_interrupted = agent_seen_ && Clock::now() - agent_there_ > kInterruptedSilence;
  if (is_interrupted && !said_interrupted_) {
    say("the agent is away, or its app is suspended; the recording continues when it is back");
  }
  said_interrupted_ = is_interrupted;
}

AppRecording::End AppRecording::follow(Interruption& interruption) {
  Clock::time_point next_look{};
  Clock::time_point waiting_since = Clock::now();
  Clock::time_point sealed_since = Clock::now();
  Clock::time_point seen_at = Clock::now();
  while (true) {
    app_.work_for(kStep);
    if (interruption.look()) return End::kInterrupted;
    if (app_.has_ended()) return End::kAppEnded;
    say_if_away();
    attach_once();
    if (agent_seen_ || was_away_ || meanwhile_) waiting_since = Clock::now();
    if (Clock::now() - waiting_since > kAgentBound) return End::kNoAgent;
    if (Clock::now() < next_look) continue;
    next_look = Clock::now() + kSessionLook;
    if (!look()) return End::kCollectorLost;
    if (!agent_seen_ && meanwhile_) meanwhile_();
    if (!agent_seen_) seen_at = Clock::now();
    if (longest_.count() != 0 && !any_session_ &&
        Clock::now() - seen_at > longest_ + kAppEndGrace) {
      return End::kRecordingEnded;
    }
    if (!all_sealed_) sealed_since = Clock::now();
    if (Clock::now() - sealed_since > kAppEndGrace) return sealed_end_;
  }
}

RunSessions AppRecording::finish(End end, JobSignals& signals) {
  const bool goes_on = end != End::kAppEnded && end != End::kAgentLost;
  if (goes_on && end != End::kCollectorLost) {
    const Result<RunView> view = look_at_run(collector_, wait_);
    for (const api::Session& session : view.ok() ? view->sessions : std::vector<api::Session>()) {
      // What this does not seal shows as not sealed in the summary.
      if (!is_sealed(session)) (void)collector_.stop_session(session.name());
    }
  }
  wait_.collector_stays = goes_on;
  wait_.process_lives = [goes_on](pid_t) { return goes_on; };
  return wait_until_sealed(collector_, wait_, signals, err_);
}

}  // namespace collect::ctl
