#include "daemon/web/live/actions.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "daemon/control/request_checks.h"
#include "daemon/web/http/json_body.h"
#include "daemon/web/live/live_view.h"

namespace collect::web {
namespace {

namespace api = control::api;

constexpr std::string_view kDetail = "/api/detail";
constexpr std::string_view kStart = "/api/start";
constexpr std::string_view kStop = "/api/stop";
constexpr std::string_view kMarker = "/api/marker";
constexpr std::string_view kSnapshot = "/api/snapshot";
constexpr std::string_view kDelete = "/api/delete";
constexpr std::string_view kFilter = "/api/filter";
constexpr std::string_view kTrigger = "/api/trigger";
constexpr std::string_view kPaths[] = {kDetail,   kStart,  kStop,   kMarker,
                                       kSnapshot, kDelete, kFilter, kTrigger};

HttpAnswer done() {
  return json_answer("{}\n");
}

// The first error among the outcomes, one for each agent.
template <class Outcomes>
HttpAnswer answer_of(const Outcomes& outcomes) {
  for (const auto& outcome : outcomes) {
    if (outcome.has_error()) return error_answer(409, outcome.error().message());
  }
  return done();
}

template <class T, class Show>
control::Callback<T> answering(AnswerTo answer, Show show) {
  return [answer = std::move(answer), show](Result<T> result) {
    answer(result.ok() ? show(*result) : error_answer(result.error()));
  };
}

// The session that is named, and no other: an empty selector would mean all of them.
Result<api::Selector> target_of(control::CollectorApi& collector, const std::string& body) {
  auto name = word_in(body, "session");
  if (!name.ok()) return name.error();
  const auto session = collector.session(full_session_name(*name));
  if (!session.ok() || bare_session_name(session->name()) != *name) {
    return Error{Code::kNotFound, "there is no session of this name"};
  }
  api::Selector target;
  target.set_session(session->name());
  return target;
}

Result<api::AnnotateRequest> marker_of(const api::Selector& target, const std::string& body) {
  const auto text = word_in(body, "text");
  if (!text.ok()) return text.error();
  if (text->empty() || text->size() > control::kMaxAnnotationBytes) {
    return Error{Code::kInvalidArgument, fmt::format("the text of a marker has 1 to {} bytes",
                                                     control::kMaxAnnotationBytes)};
  }
  api::AnnotateRequest marker;
  *marker.mutable_target() = target;
  marker.set_text(*text);
  return marker;
}

Result<control::DetailCommand> detail_of(const api::Selector& target, const std::string& body) {
  const auto mode = word_in(body, "mode");
  if (!mode.ok() || (*mode != "on" && *mode != "off")) {
    return Error{Code::kInvalidArgument, "\"mode\" is neither on nor off"};
  }
  control::DetailCommand command;
  command.mode = *mode == "on" ? api::DETAIL_MODE_ON : api::DETAIL_MODE_OFF;
  command.target = target;
  return command;
}

// What is recorded from now on.
Result<api::SetFunctionFilterRequest> filter_of(const api::Selector& target,
                                                const std::string& body) {
  auto only = words_in(body, "only");
  auto except = words_in(body, "except");
  if (!only.ok()) return only.error();
  if (!except.ok()) return except.error();
  api::SetFunctionFilterRequest filter;
  *filter.mutable_target() = target;
  filter.mutable_only()->Assign(only->begin(), only->end());
  filter.mutable_except()->Assign(except->begin(), except->end());
  COLLECT_TRY(control::check_function_filter(filter));
  return filter;
}

// Detail for a second when one of the functions is called, or takes longer than so many ms.
constexpr int64_t kTriggeredSeconds = 1;
constexpr int64_t kMaxLongMs = 24 * 3600 * 1000;
Result<api::SetTriggersRequest> trigger_of(const api::Selector& target, const std::string& body) {
  auto functions = words_in(body, "functions");
  if (!functions.ok()) return functions.error();
  api::SetTriggersRequest triggers;
  *triggers.mutable_target() = target;
  if (functions->empty()) return triggers;
  api::Trigger& trigger = *triggers.add_triggers();
  trigger.mutable_functions()->Assign(functions->begin(), functions->end());
  trigger.set_event(api::Trigger::EVENT_CALL);
  trigger.mutable_duration()->set_seconds(kTriggeredSeconds);
  const auto json = nlohmann::json::parse(body, nullptr, false);
  if (json.contains("longer_than_ms")) {
    const auto& ms = json["longer_than_ms"];
    if (!ms.is_number() || ms.get<double>() <= 0 || ms.get<double>() > kMaxLongMs) {
      return Error{Code::kInvalidArgument, "\"longer_than_ms\" is no number of a day at most"};
    }
    const auto ns = static_cast<int64_t>(ms.get<double>() * 1e6);
    trigger.set_event(api::Trigger::EVENT_LONG_CALL);
    trigger.mutable_longer_than()->set_seconds(ns / 1'000'000'000);
    trigger.mutable_longer_than()->set_nanos(static_cast<int32_t>(ns % 1'000'000'000));
  }
  COLLECT_TRY(control::check_triggers(triggers));
  return triggers;
}

// How many functions are meant by what was asked for, of all agents that did it.
template <class Outcomes>
HttpAnswer matched_answer(const Outcomes& outcomes) {
  uint64_t matched = 0;
  for (const auto& outcome : outcomes) {
    if (outcome.has_error()) return error_answer(409, outcome.error().message());
    matched += outcome.functions_matched();
  }
  return json_answer(fmt::format("{{\"functions_matched\":{}}}\n", matched));
}

// Calls the collector with a request that may be wrong, and shows its answer.
template <class Response, class Request, class Show>
void call(control::CollectorApi& collector, const Result<Request>& request, AnswerTo answer,
          Show show) {
  if (!request.ok()) {
    answer(error_answer(request.error()));
    return;
  }
  collector.methods().call<Response>(*request, answering<Response>(std::move(answer), show));
}

}  // namespace

bool Actions::is_action(std::string_view path) const {
  return std::ranges::find(kPaths, path) != std::end(kPaths);
}

void Actions::run(const HttpRequest& request, AnswerTo answer) {
  const auto target = target_of(collector_, request.body);
  if (!target.ok()) {
    answer(error_answer(target.error()));
    return;
  }
  const std::string& body = request.body;
  const std::string_view path = request.path();
  const auto outcomes = [](const auto& response) { return answer_of(response.outcomes()); };
  const auto matched = [](const auto& response) { return matched_answer(response.outcomes()); };
  if (path == kStop) {
    api::StopSessionRequest stop;
    *stop.mutable_target() = *target;
    call<api::StopSessionResponse>(collector_, Result(stop), std::move(answer), outcomes);
  } else if (path == kStart) {
    // Starts a session of its agent, which has stopped.
    api::StartSessionRequest start;
    *start.mutable_target() = *target;
    call<api::StartSessionResponse>(collector_, Result(start), std::move(answer), outcomes);
  } else if (path == kSnapshot) {
    api::SnapshotSessionRequest snapshot;
    snapshot.set_name(target->session());
    call<api::Session>(collector_, Result(snapshot), std::move(answer), [](const auto& made) {
      const nlohmann::json named = {{"session", made.name()}};
      return json_answer(named.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    });
  } else if (path == kDelete) {
    api::DeleteSessionRequest removed;
    removed.set_name(target->session());
    call<api::DeleteSessionResponse>(collector_, Result(removed), std::move(answer),
                                     [](const auto&) { return done(); });
  } else if (path == kMarker) {
    call<api::AnnotateResponse>(collector_, marker_of(*target, body), std::move(answer), outcomes);
  } else if (path == kFilter) {
    call<api::SetFunctionFilterResponse>(collector_, filter_of(*target, body), std::move(answer),
                                         matched);
  } else if (path == kTrigger) {
    call<api::SetTriggersResponse>(collector_, trigger_of(*target, body), std::move(answer),
                                   matched);
  } else {
    call<std::vector<api::DetailOutcome>>(collector_, detail_of(*target, body), std::move(answer),
                                          [](const auto& changed) { return answer_of(changed); });
  }
}

}  // namespace collect::web
