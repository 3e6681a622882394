#include "daemon/collector/detail/trigger_control.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <asio/post.hpp>

#include "daemon/collector/agents/outcomes.h"
#include "daemon/collector/detail/function_patterns.h"
#include "daemon/control/request_checks.h"
#include "daemon/symbolize/limits.h"
#include "formats/core/text/printable.h"

namespace collect::daemon {
namespace {

using TriggersCall = OutcomeCall<api::TriggersOutcome>;

ingest::WatchedEvent::Kind kind_of(api::Trigger::Event event) {
  switch (event) {
    case api::Trigger::EVENT_LONG_CALL:
      return ingest::WatchedEvent::Kind::kLongCall;
    case api::Trigger::EVENT_EXCEPTION:
      return ingest::WatchedEvent::Kind::kException;
    case api::Trigger::EVENT_COUNTER:
      return ingest::WatchedEvent::Kind::kCounter;
    case api::Trigger::EVENT_BLOCKED:
      return ingest::WatchedEvent::Kind::kBlocked;
    default:
      return ingest::WatchedEvent::Kind::kCall;
  }
}

std::vector<std::string> words_of(const google::protobuf::RepeatedPtrField<std::string>& words) {
  return {words.begin(), words.end()};
}

// "trigger 2: a call of parse_* (0x100000007) takes 7.2 ms"
std::string marker_text(const api::Trigger& trigger, const ingest::SeenEvent& seen) {
  const std::string what = fmt::format("trigger {}: ", seen.number + 1);
  if (trigger.event() == api::Trigger::EVENT_COUNTER) {
    return what + fmt::format("{} is {}, above {}", trigger.counter(), seen.value, trigger.above());
  }
  const double took_ms = static_cast<double>(seen.took_ns) / 1e6;
  if (trigger.event() == api::Trigger::EVENT_BLOCKED) {
    return what + fmt::format("a thread was blocked for {:.3g} ms", took_ms);
  }
  const std::string function = fmt::format("{} ({:#x})", trigger.functions(0), seen.function_id);
  switch (trigger.event()) {
    case api::Trigger::EVENT_LONG_CALL:
      return what + fmt::format("a call of {} takes {:.3g} ms", function, took_ms);
    case api::Trigger::EVENT_EXCEPTION:
      return fmt::format("{}an exception left {}", what, function);
    default:
      return fmt::format("{}a call of {}", what, function);
  }
}

// Detail that is kept for all of those that want to look back. Nothing: none does.
std::optional<std::vector<std::string>> functions_to_arm(const api::SetTriggersRequest& request) {
  std::optional<std::vector<std::string>> functions;
  for (const api::Trigger& trigger : request.triggers()) {
    if (!trigger.has_pre_roll()) continue;
    const std::vector<std::string> wanted = words_of(trigger.detail_functions());
    if (functions && *functions != wanted) return std::vector<std::string>();
    functions = wanted;
  }
  return functions;
}

auto say_failure(const ingest::AgentSnapshot& agent) {
  return [name = agent_name(agent.id)](const auto& result) {
    if (result.ok()) return;
    spdlog::warn("{}: what a trigger asked for: {}", name, printable(result.error().message));
  };
}

}  // namespace

// What is looked for: the triggers' events, and behind them what ends their detail.
struct TriggerControl::Task {
  // For each event: its trigger, and which end it is.
  struct Meaning {
    size_t trigger = 0;
    bool is_end = false;
  };

  std::shared_ptr<TriggersCall> call;
  api::SetTriggersRequest request;
  ingest::AgentSnapshot agent;
  std::vector<Meaning> meanings;
  std::vector<ingest::WatchedEvent> events = {};  // those whose functions were found

  void fail(const Error& error) const {
    call->fail(outcome_for<api::TriggersOutcome>(agent), error);
  }
};

TriggerControl::TriggerControl(const Registry& registry, ingest::Ingest& ingest,
                               FunctionSearch& functions, DetailControl& detail,
                               asio::io_context& io, control::Methods& methods)
    : registry_(registry), ingest_(ingest), functions_(functions), detail_(detail), io_(io) {
  methods.serve<api::SetTriggersRequest, api::SetTriggersResponse>(
      [this](const auto& request, auto done) { set(request, std::move(done)); });
  methods.serve<api::GetTriggersRequest, api::GetTriggersResponse>(
      [this](const auto& request, auto done) { done(get(request)); });
}

void TriggerControl::set(const api::SetTriggersRequest& request,
                         control::Callback<api::SetTriggersResponse> done) {
  const auto targets = registry_.recording_targets(request.target());
  if (!targets.ok()) {
    done(targets.error());
    return;
  }
  std::vector<Task::Meaning> meanings;
  for (size_t i = 0; i < static_cast<size_t>(request.triggers_size()); ++i) {
    meanings.push_back({i, false});
    if (!request.triggers(static_cast<int>(i)).until_functions().empty()) {
      meanings.push_back({i, true});
    }
  }
  const auto call = std::make_shared<TriggersCall>(targets->size(), outcomes_into(std::move(done)));
  for (const ingest::AgentSnapshot& agent : *targets) {
    find_functions(std::make_shared<Task>(Task{call, request, agent, meanings}));
  }
}

// Finds the functions of one event after the other.
void TriggerControl::find_functions(const std::shared_ptr<Task>& task) {
  if (task->events.size() == task->meanings.size()) {
    arm(task);
    return;
  }
  const Task::Meaning next = task->meanings[task->events.size()];
  const api::Trigger& trigger = task->request.triggers(static_cast<int>(next.trigger));
  ingest::WatchedEvent event;
  if (!next.is_end) {
    event.kind = kind_of(trigger.event());
    event.longer_than_ns = control::nanoseconds_of(trigger.longer_than());
    event.counter = trigger.counter();
    event.above = trigger.above();
    if (trigger.functions().empty()) {
      task->events.push_back(std::move(event));
      find_functions(task);
      return;
    }
  }
  auto patterns = FunctionPatterns::parse(
      words_of(next.is_end ? trigger.until_functions() : trigger.functions()));
  if (!patterns.ok()) {
    task->fail(patterns.error());
    return;
  }
  functions_.find(
      task->agent,
      [this, patterns = std::move(*patterns)](const auto& modules) {
        return functions_.resolve(patterns, modules, symbolize::kMaxSymbols);
      },
      [this, task, event = std::move(event)](Result<std::vector<uint64_t>> ids) mutable {
        if (!ids.ok()) {
          task->fail(ids.error());
          return;
        }
        event.functions = std::move(*ids);
        task->events.push_back(std::move(event));
        find_functions(task);
      });
}

// Before anything can fire.
void TriggerControl::arm(const std::shared_ptr<Task>& task) {
  const auto functions = functions_to_arm(task->request);
  if (!functions || task->agent.detail != ingest::DetailMode::kOff) {
    watch(task);
    return;
  }
  control::DetailCommand armed;
  armed.mode = api::DETAIL_MODE_ARMED;
  armed.target = selector_of(task->agent);
  armed.functions = *functions;
  detail_.set(armed, [this, task](const auto& outcomes) {
    if (outcomes.ok()) {
      watch(task);
    } else {
      task->fail(outcomes.error());
    }
  });
}

void TriggerControl::watch(const std::shared_ptr<Task>& task) {
  const uint64_t set = book_.set(task->agent.id, task->agent.session, task->request.triggers());
  // On the writer's thread, where most of what is seen starts nothing.
  const auto on_seen = [this, agent = task->agent, meanings = task->meanings,
                        set](ingest::SeenEvent seen) {
    const Task::Meaning meaning = meanings.at(seen.number);
    seen.number = meaning.trigger;
    const auto now = std::chrono::steady_clock::now();
    const auto trigger = meaning.is_end ? book_.end(agent.id, set, seen.number, now)
                                        : book_.fire(agent.id, set, seen.number, now);
    if (!trigger) return;
    asio::post(io_, [this, agent, meaning, trigger = *trigger, seen] {
      if (meaning.is_end) {
        end_detail(agent, trigger);
      } else {
        fire(agent, trigger, seen);
      }
    });
  };
  ingest_.watch_events(task->agent.process_id, task->events, on_seen,
                       [this, task](const auto& name) {
                         if (!name.ok()) {
                           book_.set(task->agent.id, {}, {});
                           task->fail(name.error());
                           return;
                         }
                         auto outcome = outcome_for<api::TriggersOutcome>(task->agent);
                         outcome.set_session(to_message(task->agent).session());
                         size_t matched = 0;
                         for (size_t at = 0; at < task->events.size(); ++at) {
                           if (task->meanings[at].is_end) continue;
                           matched += task->events[at].functions.size();
                         }
                         outcome.set_functions_matched(static_cast<uint32_t>(matched));
                         *outcome.mutable_triggers() = task->request.triggers();
                         for (api::Trigger& trigger : *outcome.mutable_triggers())
                           trigger.set_fired_count(0);
                         task->call->add(std::move(outcome));
                       });
}

void TriggerControl::fire(const ingest::AgentSnapshot& agent, const api::Trigger& trigger,
                          const ingest::SeenEvent& seen) {
  const std::string text = marker_text(trigger, seen);
  spdlog::info("{}: {}", agent_name(agent.id), printable(text));
  control::DetailCommand detail;
  detail.mode = api::DETAIL_MODE_ON;
  detail.target = selector_of(agent);
  detail.functions = words_of(trigger.detail_functions());
  detail.duration_ns = control::nanoseconds_of(trigger.duration());
  detail.pre_roll_ns = control::nanoseconds_of(trigger.pre_roll());
  // The marker first: it is there whenever the detail is, however soon the session ends.
  ingest_.annotate(agent.process_id, seen.at_ns, text, say_failure(agent));
  detail_.set(detail, say_failure(agent));
}

// Armed where it wants to look back, and otherwise off.
void TriggerControl::end_detail(const ingest::AgentSnapshot& agent, const api::Trigger& trigger) {
  control::DetailCommand detail;
  detail.mode = trigger.has_pre_roll() ? api::DETAIL_MODE_ARMED : api::DETAIL_MODE_OFF;
  detail.target = selector_of(agent);
  if (trigger.has_pre_roll()) detail.functions = words_of(trigger.detail_functions());
  detail_.set(detail, say_failure(agent));
}

Result<api::GetTriggersResponse> TriggerControl::get(const api::GetTriggersRequest& request) const {
  const auto targets = registry_.recording_targets(request.target());
  if (!targets.ok()) return targets.error();
  api::GetTriggersResponse response;
  for (const ingest::AgentSnapshot& agent : *targets) {
    const std::vector<api::Trigger> triggers = book_.triggers(agent.id);
    if (triggers.empty()) continue;
    api::TriggersOutcome* const outcome = response.add_outcomes();
    outcome->set_agent(agent_name(agent.id));
    outcome->set_session(to_message(agent).session());
    outcome->mutable_triggers()->Add(triggers.begin(), triggers.end());
  }
  return response;
}

}  // namespace collect::daemon
