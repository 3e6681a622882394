#include "daemon/collector/detail/recording_control.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <asio/steady_timer.hpp>

#include "daemon/collector/agents/outcomes.h"
#include "daemon/control/request_checks.h"
#include "daemon/control/service/selector.h"
#include "formats/core/text/printable.h"

namespace collect::daemon {
namespace {

// How long an agent that was idle takes at most to say what is loaded in its process.
constexpr std::chrono::milliseconds kModulesBound{5'000};
constexpr std::chrono::milliseconds kModulesLook{20};

// The error of the only agent that was asked, if it failed.
template <class T>
Status status_of(const Result<T>& result) {
  return result.ok() ? Status() : Status(result.error());
}

}  // namespace

// One agent on its way to a recording. Each step is taken when the agent has answered the one
// before, so that nothing is recorded that was not asked for.
struct RecordingControl::Task {
  ingest::AgentSnapshot agent;
  RecordingOptions options;
  control::Callback<api::Session> done;
  std::chrono::steady_clock::time_point modules_until{};
  api::Session session;
};

using RecordingOutcomes = OutcomeCall<api::RecordingOutcome>;

RecordingControl::RecordingControl(const Registry& registry, ingest::Ingest& ingest,
                                   DetailControl& detail, FilterControl& filter,
                                   asio::io_context& io, control::Methods& methods)
    : registry_(registry), ingest_(ingest), detail_(detail), filter_(filter), io_(io) {
  methods.serve<api::StartSessionRequest, api::StartSessionResponse>(
      [this](const auto& request, auto done) { start(request, std::move(done)); });
  methods.serve<api::StopSessionRequest, api::StopSessionResponse>(
      [this](const auto& request, auto done) { stop(request.target(), std::move(done)); });
}

void RecordingControl::start(const api::StartSessionRequest& request,
                             control::Callback<api::StartSessionResponse> done) {
  auto targets = registry_.targets(request.target());
  if (!targets.ok()) {
    done(targets.error());
    return;
  }
  if (control::is_empty(request.target())) {
    std::erase_if(*targets, [](const ingest::AgentSnapshot& one) {
      return one.state != ingest::AgentState::kConnected;
    });
    if (targets->empty()) {
      done(Error{Code::kUnsupported, "every connected agent records already"});
      return;
    }
  }
  const auto call =
      std::make_shared<RecordingOutcomes>(targets->size(), outcomes_into(std::move(done)));
  for (const ingest::AgentSnapshot& agent : *targets) {
    start_one(agent, RecordingOptions::of(request), IfRecording::kFail,
              [call, agent](Result<api::Session> session) {
                api::RecordingOutcome outcome = outcome_for<api::RecordingOutcome>(agent);
                if (!session.ok()) {
                  call->fail(std::move(outcome), session.error());
                  return;
                }
                *outcome.mutable_session() = std::move(*session);
                call->add(std::move(outcome));
              });
  }
}

void RecordingControl::start_one(const ingest::AgentSnapshot& agent,
                                 const RecordingOptions& options, IfRecording if_recording,
                                 control::Callback<api::Session> done) {
  if (agent.state == ingest::AgentState::kDialing) {
    done(not_there(agent));
    return;
  }
  const auto task = std::make_shared<Task>(Task{agent, options, std::move(done), {}, {}});
  const auto on_start = [this, task, if_recording](const Result<ingest::SessionSnapshot>& session) {
    if (session.ok()) {
      task->session = to_message(*session);
    } else if (session.code() == Code::kAlreadyExists && if_recording == IfRecording::kGoOn) {
      const auto now = registry_.agent(agent_name(task->agent.id));
      if (now.ok()) task->session.set_name(to_message(*now).session());
    } else {
      task->done(session.error());
      return;
    }
    task->modules_until = std::chrono::steady_clock::now() + kModulesBound;
    choose_functions(task);
  };
  const auto on_ready = [this, task, on_start](const Status& before) {
    if (before.ok()) {
      ingest_.start_recording(task->agent.process_id, on_start);
    } else {
      task->done(before.error());
    }
  };
  if (options.functions) {
    // Its modules are known once it records: until then, nothing is.
    filter_.record_nothing(agent, on_ready);
  } else if (!task->options.needs_modules() && options.has_detail()) {
    set_detail(task, on_ready);
  } else {
    on_ready({});
  }
}

void RecordingControl::choose_functions(const std::shared_ptr<Task>& task) {
  if (!task->options.needs_modules()) {
    began(task, {});
    return;
  }
  ingest_.modules(
      task->agent.process_id, [this, task](const Result<std::vector<storage::ModuleInfo>>& known) {
        if (!known.ok()) {
          began(task, known.error());
          return;
        }
        if (known->empty() && std::chrono::steady_clock::now() < task->modules_until) {
          auto timer = std::make_shared<asio::steady_timer>(io_, kModulesLook);
          timer->async_wait([this, task, timer](const std::error_code& error) {
            if (!error) choose_functions(task);
          });
          return;
        }
        const auto then_detail = [this, task](const Status& filtered) {
          if (!filtered.ok() || !task->options.has_detail()) {
            began(task, filtered);
            return;
          }
          set_detail(task, [this, task](const Status& detail) { began(task, detail); });
        };
        if (!task->options.functions) {
          then_detail({});
          return;
        }
        api::SetFunctionFilterRequest filter;
        *filter.mutable_target() = selector_of(task->agent);
        *filter.mutable_only() = task->options.functions->only();
        *filter.mutable_except() = task->options.functions->except();
        filter_.set(filter, [then_detail](const auto& result) { then_detail(status_of(result)); });
      });
}

void RecordingControl::set_detail(const std::shared_ptr<Task>& task,
                                  std::function<void(const Status&)> done) {
  const api::DetailOptions& options = task->options.detail;
  control::DetailCommand detail;
  detail.mode = options.mode();
  detail.target = selector_of(task->agent);
  detail.functions.assign(options.functions().begin(), options.functions().end());
  detail.duration_ns = control::nanoseconds_of(options.duration());
  detail_.set(detail, [done = std::move(done)](const auto& result) { done(status_of(result)); });
}

// A recording that can't be as it was asked for does not continue.
void RecordingControl::began(const std::shared_ptr<Task>& task, const Status& chosen) {
  if (!chosen.ok()) {
    ingest_.stop_recording(
        task->agent.process_id,
        [task, chosen](const Result<ingest::SessionSnapshot>&) { task->done(chosen.error()); });
    return;
  }
  if (task->options.duration.count() > 0) {
    stop_later(task->session.name(), task->options.duration);
  }
  task->done(task->session);
}

void RecordingControl::stop_later(const std::string& session, std::chrono::nanoseconds duration) {
  auto timer = std::make_shared<asio::steady_timer>(
      io_, std::chrono::duration_cast<std::chrono::steady_clock::duration>(duration));
  timer->async_wait([this, session, timer](const std::error_code& error) {
    if (error) return;
    api::Selector selector;
    selector.set_session(session);
    stop(selector, [session](const Result<api::StopSessionResponse>& stopped) {
      if (!stopped.ok()) {
        spdlog::warn("{} was to stop by itself: {}", session, printable(stopped.error().message));
      }
    });
  });
}

void RecordingControl::stop(const api::Selector& target,
                            control::Callback<api::StopSessionResponse> done) {
  std::vector<ingest::SessionSnapshot> meant;
  std::optional<ingest::SessionSnapshot> sealed;
  const auto agents = registry_.targets(target);
  for (const ingest::SessionSnapshot& session : registry_.sessions()) {
    if (!control::matches(to_message(session), target)) continue;
    if (!is_over(session.state)) {
      meant.push_back(session);
    } else if (!sealed) {
      sealed = session;
    }
  }
  if (meant.empty() && agents.ok()) {
    for (const ingest::SessionSnapshot& session : registry_.sessions()) {
      const auto is_its = [&session](const auto& agent) { return agent.id == session.agent; };
      if (is_over(session.state) || std::none_of(agents->begin(), agents->end(), is_its)) continue;
      meant.push_back(session);
    }
  }
  if (meant.empty() && sealed && !control::is_empty(target)) {
    // What was asked for holds already.
    api::StopSessionResponse response;
    *response.add_outcomes()->mutable_session() = to_message(*sealed);
    done(std::move(response));
    return;
  }
  if (meant.empty()) {
    const bool is_known = control::is_empty(target) || agents.ok();
    done(is_known ? Error{Code::kNotFound, "no session records now"} : agents.error());
    return;
  }
  const auto call =
      std::make_shared<RecordingOutcomes>(meant.size(), outcomes_into(std::move(done)));
  for (const ingest::SessionSnapshot& session : meant) {
    const auto agent = registry_.agent(std::to_string(session.agent));
    const auto on_answer = [call, session](const Result<ingest::SessionSnapshot>& stopped) {
      api::RecordingOutcome outcome;
      outcome.set_agent(to_message(session).agent());
      if (!stopped.ok()) {
        call->fail(std::move(outcome), stopped.error());
        return;
      }
      *outcome.mutable_session() = to_message(*stopped);
      call->add(std::move(outcome));
    };
    if (session.agent == 0) {
      ingest_.stop_feed(session.name, on_answer);
    } else if (agent.ok()) {
      ingest_.stop_recording(agent->process_id, on_answer);
    } else {
      on_answer(agent.error());
    }
  }
}

}  // namespace collect::daemon
