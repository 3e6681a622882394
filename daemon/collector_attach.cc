// AttachAgent and DetachAgent: agents that listen, at an address or on a device.
#include <algorithm>
#include <asio/steady_timer.hpp>

#include "daemon/collector.h"

namespace collect::daemon {

void Collector::attach(const std::string& address, control::Callback<api::Agent> done) {
  if (attach::is_device_address(address)) {
    attach_place(address, done);
    return;
  }
  ingest_->attach(address, [this, done = std::move(done)](Result<ingest::AgentSnapshot> entry) {
    if (!entry.ok()) {
      done(entry.error());
      return;
    }
    await_agent(entry->address, done,
                [this, name = agent_name(entry->id), dialling = to_message(*entry)](uint64_t id) {
                  const auto now = registry_.agent(name);  // with what went wrong so far
                  answer_attach(id, now.ok() ? to_message(*now) : dialling);
                });
  });
}

// A place that is found by itself is attached by itself: this is for one that was detached, or that
// is known already.
void Collector::attach_place(const std::string& address,
                             const control::Callback<api::Agent>& done) {
  attach_->attach(address, [this, address, done](const Status& attached) {
    if (!attached.ok()) {
      done(attached.error());
      return;
    }
    await_agent(address, done, [this, address](uint64_t id) {
      attach_->status_of(address, [this, address, id](const Result<std::string>& status) {
        answer_attach(id, status.ok() ? Error{Code::kUnsupported,
                                              address + ": " + *status +
                                                  "; collectctl devices shows what comes of it"}
                                      : status.error());
      });
    });
  });
}

void Collector::await_agent(const std::string& address, control::Callback<api::Agent> done,
                            std::function<void(uint64_t id)> otherwise) {
  uint64_t id = 0;
  {
    std::lock_guard lock(attach_mutex_);
    id = next_attach_++;
    attaching_.push_back({id, address, std::move(done)});
  }
  for (const ingest::AgentSnapshot& agent : registry_.agents()) {
    if (agent.dialled && agent.address == address && is_up(agent)) {
      answer_attach(id, to_message(agent));
      return;
    }
  }
  auto timer = std::make_shared<asio::steady_timer>(watches_.io(), kAttachWait);
  timer->async_wait(
      [id, timer, otherwise = std::move(otherwise)](const std::error_code&) { otherwise(id); });
}

void Collector::answer_attach(uint64_t id, const Result<api::Agent>& agent) {
  control::Callback<api::Agent> done;
  {
    std::lock_guard lock(attach_mutex_);
    const auto found = std::find_if(attaching_.begin(), attaching_.end(),
                                    [id](const PendingAttach& attach) { return attach.id == id; });
    if (found == attaching_.end()) return;
    done = std::move(found->done);
    attaching_.erase(found);
  }
  done(agent);
}

void Collector::detach(const std::string& name, control::Callback<api::Agent> done) {
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
    ingest_->detach(agent.process_id, [done](Result<ingest::AgentSnapshot> gone) {
      if (gone.ok()) {
        done(to_message(*gone));
      } else {
        done(gone.error());
      }
    });
  };
  if (agent->dialled) {
    attach_->release(agent->address);
    ingest_->detach_address(agent->address, then_the_process);
  } else {
    then_the_process(std::string());
  }
}

}  // namespace collect::daemon
