// What the standing rules say of an agent that has come.
#include <spdlog/spdlog.h>

#include <asio/post.hpp>

#include "daemon/collector.h"
#include "daemon/collector_messages.h"
#include "formats/core/printable.h"

namespace collect::daemon {

api::Rules Collector::rules() {
  return rules_.rules();
}

void Collector::set_rules(const api::Rules& rules, control::Callback<api::Rules> done) {
  asio::post(files_, [this, rules, done = std::move(done)] {
    if (const Status saved = rules_.save(rules); !saved.ok()) {
      done(saved.error());
      return;
    }
    done(rules_.rules());
  });
}

void Collector::apply_rules(const ingest::AgentSnapshot& agent) {
  const auto found = rules_.find(to_message(agent));
  if (!found) return;
  const auto say = [name = agent_name(agent.id), number = found->number](const Status& status) {
    if (status.ok()) {
      spdlog::info("{}: rule {} holds", name, number);
    } else {
      spdlog::warn("{}: rule {} does not hold: {}", name, number,
                   printable(status.error().message));
    }
  };
  if (found->rule.action() == api::Rule::ACTION_IDLE) {
    // The recording that it came with may not have arrived yet, so the agent itself is asked.
    wire::Command stop;
    stop.mutable_stop_recording();
    ingest_->command(
        agent.process_id, std::move(stop), [say](const Result<wire::CommandResult>& result) {
          say(!result.ok() ? result.error() : result->ok() ? Status() : Status(refusal(*result)));
        });
    return;
  }
  start_recording(agent, RecordingOptions::of(found->rule), IfRecording::kGoOn,
                  [say](const Result<api::Session>& session) {
                    say(session.ok() ? Status() : session.error());
                  });
}

}  // namespace collect::daemon
