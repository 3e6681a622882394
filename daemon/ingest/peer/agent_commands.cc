#include "daemon/ingest/peer/agent_commands.h"

#include <fmt/core.h>

#include <utility>

#include "daemon/ingest/link/limits.h"

namespace collect::ingest {

void AgentCommands::issue(wire::Command command, Answer<wire::CommandResult> done) {
  if (!connection_.connected()) {
    done(Error{Code::kUnavailable, profile_.name() + " is not connected"});
    return;
  }
  if (results_.size() >= kMaxPendingCommands) {
    done(Error{Code::kLimit, fmt::format("{} has not answered {} commands yet", profile_.name(),
                                         kMaxPendingCommands)});
    return;
  }
  command.set_command_id(++last_id_);
  results_.add(last_id_, std::move(done), std::chrono::steady_clock::now() + kCommandTimeout);
  connection_.send(wire::FrameType::kCommand, command);
}

void AgentCommands::start_recording(Answer<SessionSnapshot> done) {
  if (const AgentSession* current = recordings_.current()) {
    done(Error{Code::kAlreadyExists,
               fmt::format("{} records already, into {}", profile_.name(), current->shown.name)});
    return;
  }
  wire::Command start;
  start.mutable_start_recording();
  issue(std::move(start), [this, done = std::move(done)](Result<wire::CommandResult> result) {
    if (!result.ok()) {
      done(result.error());
    } else if (!result->ok()) {
      done(Error{Code::kUnavailable, "the agent says: " + result->error()});
    } else {
      starts_.add(result->recording(), done, std::chrono::steady_clock::now() + kCommandTimeout);
      answer_starts();
    }
  });
}

void AgentCommands::stop_recording() {
  wire::Command stop;
  stop.mutable_stop_recording();
  issue(std::move(stop), [](const Result<wire::CommandResult>&) {});
}

void AgentCommands::answer_starts() {
  const AgentSession* session = recordings_.opened();
  if (session != nullptr) starts_.answer(session->recording, session->shown);
}

void AgentCommands::fail_all(const std::string& reason) {
  results_.fail_all(reason);
  starts_.fail_all(reason);
}

void AgentCommands::sweep(SteadyTime now) {
  const std::string reason =
      fmt::format("{} did not answer within {} s", profile_.name(), kCommandTimeout.count() / 1000);
  results_.fail_late(now, reason);
  starts_.fail_late(now, reason);
}

}  // namespace collect::ingest
