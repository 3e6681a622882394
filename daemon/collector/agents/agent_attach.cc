#include "daemon/collector/agents/agent_attach.h"

#include <fmt/core.h>
#include <algorithm>
#include <asio/steady_timer.hpp>

#include "daemon/collector/agents/messages.h"

namespace collect::daemon {

AgentAttach::AgentAttach(const Registry& registry, ingest::Ingest& ingest, attach::Attach& devices,
                         asio::io_context& io, control::Methods& methods)
    : registry_(registry), ingest_(ingest), devices_(devices), io_(io) {
  methods.serve<api::AttachAgentRequest, api::Agent>(
      [this](const auto& request, auto done) { attach(request.address(), done); });
  methods.serve<api::DetachAgentRequest, api::Agent>(
      [this](const auto& request, auto done) { detach(request.name(), done); });
}

void AgentAttach::agent_is_up(const ingest::AgentSnapshot& agent) {
  std::vector<uint64_t> waiting;
  {
    std::lock_guard lock(mutex_);
    for (const Pending& attach : pending_) {
      if (attach.address == agent.address) waiting.push_back(attach.id);
    }
  }
  for (const uint64_t id : waiting) answer(id, to_message(agent));
}

void AgentAttach::attach(const std::string& address, const control::Callback<api::Agent>& done) {
  if (attach::is_device_address(address)) {
    attach_device(address, done);
    return;
  }
  ingest_.attach(address, [this, done](Result<ingest::AgentSnapshot> entry) {
    if (!entry.ok()) {
      done(entry.error());
      return;
    }
    await_agent(entry->address, done,
                [this, name = agent_name(entry->id), dialling = to_message(*entry)](uint64_t id) {
                  const auto now = registry_.agent(name);  // with what went wrong so far
                  answer(id, now.ok() ? to_message(*now) : dialling);
                });
  });
}

// An endpoint that is found by itself is attached by itself: this is for one that was detached, or
// that is known already.
void AgentAttach::attach_device(const std::string& address,
                                const control::Callback<api::Agent>& done) {
  devices_.attach(address, [this, address, done](const Status& attached) {
    if (!attached.ok()) {
      done(attached.error());
      return;
    }
    await_agent(address, done, [this, address](uint64_t id) {
      devices_.status_of(address, [this, address, id](const Result<std::string>& status) {
        answer(id, status.ok() ? Error{Code::kUnsupported,
                                       fmt::format("{}: {}; collectctl devices shows its state",
                                                   address, *status)}
                               : status.error());
      });
    });
  });
}

void AgentAttach::await_agent(const std::string& address, control::Callback<api::Agent> done,
                              std::function<void(uint64_t id)> otherwise) {
  uint64_t id = 0;
  {
    std::lock_guard lock(mutex_);
    id = next_id_++;
    pending_.push_back({id, address, std::move(done)});
  }
  for (const ingest::AgentSnapshot& agent : registry_.agents()) {
    if (agent.dialled && agent.address == address && is_up(agent)) {
      answer(id, to_message(agent));
      return;
    }
  }
  auto timer = std::make_shared<asio::steady_timer>(io_, kAttachWait);
  timer->async_wait(
      [id, timer, otherwise = std::move(otherwise)](const std::error_code&) { otherwise(id); });
}

void AgentAttach::answer(uint64_t id, const Result<api::Agent>& agent) {
  control::Callback<api::Agent> done;
  {
    std::lock_guard lock(mutex_);
    const auto found = std::find_if(pending_.begin(), pending_.end(),
                                    [id](const Pending& attach) { return attach.id == id; });
    if (found == pending_.end()) return;
    done = std::move(found->done);
    pending_.erase(found);
  }
  done(agent);
}

void AgentAttach::detach(const std::string& name, const control::Callback<api::Agent>& done) {
  const auto agent = registry_.agent_to_detach(name);
  if (!agent.ok()) {
    done(agent.error());
    return;
  }
  const auto then_the_process = [this, agent = *agent, done](Result<std::string>) {
    if (agent.state == ingest::AgentState::kDialing) {
      api::Agent message = to_message(agent);
      message.set_state(api::AGENT_STATE_GONE);
      message.set_status("detached by command");
      done(std::move(message));
      return;
    }
    ingest_.detach(agent.process_id, [done](Result<ingest::AgentSnapshot> gone) {
      if (gone.ok()) {
        done(to_message(*gone));
      } else {
        done(gone.error());
      }
    });
  };
  if (agent->dialled) {
    devices_.release(agent->address);
    ingest_.detach_address(agent->address, then_the_process);
  } else {
    then_the_process(std::string());
  }
}

}  // namespace collect::daemon
