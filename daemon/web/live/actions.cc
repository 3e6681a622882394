#include "daemon/web/live/actions.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <utility>

#include "daemon/control/request_checks.h"
#include "daemon/web/live/live_view.h"

namespace collect::web {
namespace {

namespace api = control::api;

constexpr std::string_view kDetail = "/api/detail";
constexpr std::string_view kStart = "/api/start";
constexpr std::string_view kStop = "/api/stop";
constexpr std::string_view kMarker = "/api/marker";
constexpr std::string_view kSnapshot = "/api/snapshot";

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

}  // namespace

Result<std::string> word_in(const std::string& body, const char* key) {
  const auto json = nlohmann::json::parse(body, nullptr, false);
  if (!json.is_object()) return Error{Code::kInvalidArgument, "the body is no JSON object"};
  const auto found = json.find(key);
  if (found == json.end() || !found->is_string()) {
    return Error{Code::kInvalidArgument, fmt::format("the body has no text \"{}\"", key)};
  }
  return found->get<std::string>();
}

bool Actions::is_action(std::string_view path) {
  return path == kDetail || path == kStart || path == kStop || path == kMarker || path == kSnapshot;
}

void Actions::run(const HttpRequest& request, AnswerTo answer) {
  const auto target = target_of(collector_, request.body);
  if (!target.ok()) {
    answer(error_answer(target.error()));
    return;
  }
  const std::string_view path = request.path();
  if (path == kStop) {
    api::StopSessionRequest stop;
    *stop.mutable_target() = *target;
    collector_.methods().call<api::StopSessionResponse>(
        stop, answering<api::StopSessionResponse>(std::move(answer), [](const auto& response) {
          return answer_of(response.outcomes());
        }));
  } else if (path == kStart) {
    // Starts a session of its agent, which has stopped.
    api::StartSessionRequest start;
    *start.mutable_target() = *target;
    collector_.methods().call<api::StartSessionResponse>(
        start, answering<api::StartSessionResponse>(std::move(answer), [](const auto& response) {
          return answer_of(response.outcomes());
        }));
  } else if (path == kSnapshot) {
    api::SnapshotSessionRequest snapshot;
    snapshot.set_name(target->session());
    collector_.methods().call<api::Session>(
        snapshot, answering<api::Session>(std::move(answer), [](const api::Session& made) {
          const nlohmann::json named = {{"session", made.name()}};
          return json_answer(named.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
        }));
  } else if (path == kMarker) {
    const auto marker = marker_of(*target, request.body);
    if (!marker.ok()) {
      answer(error_answer(marker.error()));
      return;
    }
    collector_.methods().call<api::AnnotateResponse>(
        *marker, answering<api::AnnotateResponse>(std::move(answer), [](const auto& response) {
          return answer_of(response.outcomes());
        }));
  } else {
    const auto mode = word_in(request.body, "mode");
    if (!mode.ok() || (*mode != "on" && *mode != "off")) {
      answer(error_answer(400, "\"mode\" is neither on nor off"));
      return;
    }
    control::DetailCommand command;
    command.mode = *mode == "on" ? api::DETAIL_MODE_ON : api::DETAIL_MODE_OFF;
    command.target = *target;
    collector_.methods().call<std::vector<api::DetailOutcome>>(
        command, answering<std::vector<api::DetailOutcome>>(
                     std::move(answer), [](const auto& outcomes) { return answer_of(outcomes); }));
  }
}

}  // namespace collect::web
