#include "daemon/ingest/pending_commands.h"

#include <utility>
#include <vector>

#include "daemon/ingest/limits.h"

namespace collect::ingest {

bool PendingCommands::is_full() const {
  return commands_.size() >= kMaxPendingCommands;
}

uint64_t PendingCommands::add(Answer<wire::CommandResult> done, SteadyTime now) {
  const uint64_t id = next_++;
  commands_[id] = {std::move(done), now + kCommandTimeout};
  return id;
}

void PendingCommands::take(const wire::CommandResult& result) {
  const auto pending = commands_.find(result.command_id());
  if (pending == commands_.end()) return;
  const Answer<wire::CommandResult> done = std::move(pending->second.done);
  commands_.erase(pending);
  done(result);
}

void PendingCommands::fail_all(const std::string& reason) {
  const auto commands = std::exchange(commands_, {});
  for (const auto& [id, pending] : commands) pending.done(Error{Code::kUnavailable, reason});
}

void PendingCommands::fail_late(SteadyTime now, const std::string& reason) {
  std::vector<Answer<wire::CommandResult>> late;
  std::erase_if(commands_, [&](auto& command) {
    if (command.second.deadline > now) return false;
    late.push_back(std::move(command.second.done));
    return true;
  });
  for (const auto& done : late) done(Error{Code::kUnavailable, reason});
}

}  // namespace collect::ingest
