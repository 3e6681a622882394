#include "daemon/collector/detail/rule_control.h"

#include <spdlog/spdlog.h>

#include "daemon/collector/agents/messages.h"
#include "formats/core/text/printable.h"

namespace collect::daemon {
namespace {

bool sets_buffering(const api::Rule& rule) {
  return rule.when_full() != api::Rule::WHEN_FULL_UNSPECIFIED || rule.has_spool_mb();
}

wire::Command buffering_command(const api::Rule& rule) {
  wire::Command command;
  wire::SetBuffering& buffering = *command.mutable_set_buffering();
  switch (rule.when_full()) {
    case api::Rule::WHEN_FULL_DROP:
      buffering.set_when_full(wire::SetBuffering::DROP);
      break;
    case api::Rule::WHEN_FULL_WAIT:
      buffering.set_when_full(wire::SetBuffering::WAIT);
      break;
    case api::Rule::WHEN_FULL_OVERWRITE:
      buffering.set_when_full(wire::SetBuffering::OVERWRITE);
      break;
    default:
      break;
  }
  buffering.set_sets_spool(rule.has_spool_mb());
  buffering.set_spool_mb(rule.spool_mb());
  return command;
}

Status status_of(const Result<wire::CommandResult>& result) {
  if (!result.ok()) return result.error();
  return result->ok() ? Status() : Status(refusal(*result));
}

// Logs what became of one part of a rule.
struct RuleLog {
  std::string agent;
  size_t number = 0;

  void operator()(const Status& status) const {
    if (status.ok()) {
      spdlog::info("{}: rule {} is applied", agent, number);
    } else {
      spdlog::warn("{}: rule {} is not applied: {}", agent, number,
                   printable(status.error().message));
    }
  }
};

}  // namespace

RuleControl::RuleControl(RuleBook& rules, ingest::Ingest& ingest, RecordingControl& recordings,
                         TaskThreads& files, control::Methods& methods)
    : rules_(rules), ingest_(ingest), recordings_(recordings) {
  methods.serve<api::GetRulesRequest, api::Rules>(
      [this](const auto&, auto done) { done(rules_.rules()); });
  // Answers when they are on disk.
  methods.serve<api::SetRulesRequest, api::Rules>([this, &files](const auto& request, auto done) {
    api::Rules wanted;
    *wanted.mutable_rules() = request.rules();
    files.post(
        [this, wanted, done] {
          if (const Status saved = rules_.save(wanted); !saved.ok()) {
            done(saved.error());
            return;
          }
          done(rules_.rules());
        },
        done);
  });
}

void RuleControl::apply(const ingest::AgentSnapshot& agent) {
  const auto found = rules_.find(to_message(agent));
  if (!found) return;
  if (!sets_buffering(found->rule)) {
    apply(agent, *found);
    return;
  }
  // Before a recording begins; one that can't be buffered so is recorded all the same.
  ingest_.command(agent.process_id, buffering_command(found->rule),
                  [this, agent, found = *found](const Result<wire::CommandResult>& result) {
                    const Status status = status_of(result);
                    if (!status.ok()) {
                      spdlog::warn("{}: rule {}: its when_full and spool_mb are not applied: {}",
                                   agent_name(agent.id), found.number,
                                   printable(status.error().message));
                    }
                    apply(agent, found);
                  });
}

void RuleControl::apply(const ingest::AgentSnapshot& agent, const MatchedRule& found) {
  const RuleLog say{agent_name(agent.id), found.number};
  if (found.rule.action() == api::Rule::ACTION_IDLE) {
    // The recording that it came with may not have arrived yet, so the agent itself is asked.
    wire::Command stop;
    stop.mutable_stop_recording();
    ingest_.command(agent.process_id, std::move(stop),
                    [say](const Result<wire::CommandResult>& result) { say(status_of(result)); });
    return;
  }
  recordings_.start_one(agent, RecordingOptions::of(found.rule),
                        RecordingControl::IfRecording::kGoOn,
                        [say](const Result<api::Session>& session) {
                          say(session.ok() ? Status() : session.error());
                        });
}

}  // namespace collect::daemon
