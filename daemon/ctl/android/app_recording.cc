#include "daemon/ctl/android/app_recording.h"

#include <algorithm>
#include <utility>

#include "daemon/attach/unix_sockets.h"
#include "daemon/ctl/text.h"

namespace collect::ctl {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kStep{20};

std::string agent_address(const AdbDevice& device, pid_t pid) {
  return "adb:" + device.serial() + ":" + attach::kAgentSocketPrefix + std::to_string(pid);
}

}  // namespace

bool Interruption::look() {
  for (Signal signal = signals_.wait(std::chrono::milliseconds(0)); !seen_ && signal.number != 0;
       signal = signals_.wait(std::chrono::milliseconds(0))) {
    seen_ = signal.number != SIGCHLD;
  }
  return seen_;
}

// The collector finds the agent by itself, at its next search; asked, at once.
void AppRecording::attach_once() {
  if (attach_asked_ || watch_.pid() == 0) return;
  attach_asked_ = true;
  if (wait_.tag.empty()) wait_.address = agent_address(device_, watch_.pid());
  (void)collector_.attach(agent_address(device_, watch_.pid()));
}

bool AppRecording::look() {
  if (wait_.tag.empty() && wait_.address.empty()) return true;  // no process is known yet
  const Result<RunView> view = look_at_run(collector_, wait_);
  if (!view.ok()) return false;
  const bool was_seen = agent_seen_;
  for (const api::Agent& agent : view->agents) {
    agent_seen_ = agent_seen_ || agent.state() != api::AGENT_STATE_DIALING;
    if (!starts_idle_ || agent.state() != api::AGENT_STATE_CONNECTED) continue;
    api::StartSessionRequest start;
    start.mutable_target()->set_agent(agent.name());
    starts_idle_ = !collector_.start_session(start).ok();
  }
  agent_seen_ = agent_seen_ || !view->sessions.empty();
  if (agent_seen_ && !was_seen) {
    err_ << "collectctl: the agent is connected; Ctrl-C ends the recording\n";
    err_.flush();
  }
  all_sealed_ = !view->sessions.empty() &&
                std::all_of(view->sessions.begin(), view->sessions.end(), is_sealed);
  return true;
}

AppRecording::End AppRecording::follow(Interruption& interruption) {
  Clock::time_point next_look{};
  Clock::time_point waiting_since = Clock::now();
  Clock::time_point sealed_since = Clock::now();
  while (true) {
    watch_.poll();
    device_.client().work_for(kStep);
    if (interruption.look()) return End::kInterrupted;
    if (watch_.has_ended()) return End::kAppEnded;
    if (watch_.is_away() != was_away_) {
      was_away_ = watch_.is_away();
      err_ << "collectctl: " << printable(device_.serial())
           << (was_away_ ? " is away; the recording goes on when it is back\n" : " is back\n");
      err_.flush();
    }
    attach_once();
    if (agent_seen_ || was_away_) waiting_since = Clock::now();
    if (Clock::now() - waiting_since > kAgentBound) return End::kNoAgent;
    if (Clock::now() < next_look) continue;
    next_look = Clock::now() + kSessionLook;
    if (!look()) return End::kCollectorLost;
    if (!all_sealed_) sealed_since = Clock::now();
    if (Clock::now() - sealed_since > kAppEndGrace) return End::kRecordingEnded;
  }
}

RunSessions AppRecording::finish(End end, JobSignals& signals) {
  const bool goes_on = end != End::kAppEnded;
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
