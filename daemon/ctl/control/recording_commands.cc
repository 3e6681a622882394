// The online commands that decide what is recorded.
#include <fmt/core.h>

#include <fstream>
#include <iostream>
#include <utility>

#include "daemon/ctl/control/commands.h"
#include "daemon/ctl/control/connection/client.h"
#include "daemon/ctl/control/output.h"
#include "storage/manifest/manifest.h"

namespace collect::ctl {
namespace {

template <class Response>
int print_sessions(const Online& online, const Result<Response>& response) {
  if (!response.ok()) return failed(online, response.error());
  int code = kExitOk;
  print(online, *response, [&] {
    std::vector<api::Session> sessions;
    for (const api::RecordingOutcome& outcome : response->outcomes()) {
      if (outcome.has_session()) sessions.push_back(outcome.session());
    }
    return session_table(sessions, online.columns);
  });
  for (const api::RecordingOutcome& outcome : response->outcomes()) {
    if (!outcome.has_error()) continue;
    if (online.json) {  // it is in the outcomes
      code = kExitFailed;
      continue;
    }
    code = failed(online, {Code::kUnavailable, fmt::format("{}: {}", short_name(outcome.agent()),
                                                           outcome.error().message())});
  }
  return code;
}

void set_duration(google::protobuf::Duration* field, std::chrono::nanoseconds value) {
  field->set_seconds(value.count() / 1'000'000'000);
  field->set_nanos(static_cast<int32_t>(value.count() % 1'000'000'000));
}

constexpr size_t kMaxRulesFileBytes = 4u << 20;

// As show_rules prints them. "-": standard input.
Result<api::SetRulesRequest> read_rules(const std::string& file) {
  std::ifstream opened;
  if (file != "-") opened.open(file);
  std::istream& in = file == "-" ? std::cin : opened;
  std::string text(kMaxRulesFileBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(in.gcount()));
  if (in.bad() || (file != "-" && !opened.is_open())) {
    return Error{Code::kIo, file + " can't be read"};
  }
  if (text.size() > kMaxRulesFileBytes) {
    return Error{Code::kLimit,
                 fmt::format("{}: longer than {}", file, short_bytes(kMaxRulesFileBytes))};
  }
  api::SetRulesRequest request;
  const Status parsed = from_json(text, request);
  if (parsed.ok()) return request;
  return Error{parsed.code(), fmt::format("{}: {}", file, parsed.error().message)};
}

template <class Request>
Request detail_request(const DetailOptions& options) {
  Request request;
  if (!options.target.empty()) request.mutable_target()->set_any(options.target);
  request.mutable_threads()->Add(options.threads.begin(), options.threads.end());
  return request;
}

template <class Response>
int print_detail(const Online& online, const DetailOptions& options,
                 const Result<Response>& response) {
  const int code = print_outcomes(
      online, response, {"AGENT", "SESSION", "DETAIL", "PRE-ROLL", "FUNCTIONS", "RESULT"},
      [&options](const api::DetailOutcome& outcome) -> std::vector<std::string> {
        return {short_name(outcome.session()), mode_word(outcome.detail()),
                with_thousands(outcome.pre_roll_records()),
                options.functions.empty() ? "all" : std::to_string(outcome.functions_matched())};
      });
  if (!response.ok()) return code;
  for (const api::DetailOutcome& outcome : response->outcomes()) {
    for (const std::string& warning : outcome.warnings()) {
      online.err << "collectctl: " << short_name(outcome.agent()) << ": "
                 << printable_sentence(warning) << "\n";
    }
  }
  online.err.flush();
  return code;
}

// A trigger arms detail or switches it on; without triggers it stays as it is, and costs time.
void say_where_detail_stays(const Online& online, Client& client,
                            const api::SetTriggersResponse& response) {
  for (const api::TriggersOutcome& outcome : response.outcomes()) {
    const auto agents = client.agents(outcome.agent());
    if (!agents.ok() || agents->size() != 1) continue;
    const api::DetailMode mode = agents->front().detail();
    if (mode != api::DETAIL_MODE_ON && mode != api::DETAIL_MODE_ARMED) continue;
    online.err << "collectctl: " << short_name(outcome.agent()) << ": detail stays "
               << mode_word(mode) << "; collectctl detail stop ends it\n";
  }
  online.err.flush();
}

// Its functions, or its counter or the threads and the bound.
std::string subject_of(const api::Trigger& trigger) {
  if (trigger.event() == api::Trigger::EVENT_COUNTER) {
    return fmt::format("{} > {}", printable_sentence(trigger.counter()), trigger.above());
  }
  if (trigger.event() == api::Trigger::EVENT_BLOCKED) {
    const double ms = static_cast<double>(trigger.longer_than().seconds()) * 1e3 +
                      static_cast<double>(trigger.longer_than().nanos()) / 1e6;
    return fmt::format("any thread > {:g} ms", ms);
  }
  std::string functions;
  for (const std::string& one : trigger.functions()) {
    functions += (functions.empty() ? "" : ", ") + printable_sentence(one);
  }
  return functions;
}

}  // namespace

int start_session(const Online& online, const StartOptions& options) {
  api::StartSessionRequest request;
  if (!options.target.empty()) request.mutable_target()->set_any(options.target);
  if (!options.only.empty() || !options.except.empty()) {
    request.mutable_functions()->mutable_only()->Add(options.only.begin(), options.only.end());
    request.mutable_functions()->mutable_except()->Add(options.except.begin(),
                                                       options.except.end());
  }
  if (options.detail) request.mutable_detail()->set_mode(api::DETAIL_MODE_ON);
  if (options.duration.count() > 0) set_duration(request.mutable_duration(), options.duration);
  return print_sessions(online, Client(online.control).start_session(request));
}

int stop_session(const Online& online, const std::string& word) {
  return print_sessions(online, Client(online.control).stop_session(word));
}

int show_rules(const Online& online) {
  const Result<api::Rules> rules = Client(online.control).rules();
  if (!rules.ok()) return failed(online, rules.error());
  // There is one way to write them: what is printed can be given back.
  online.out << message_line(*rules);
  online.out.flush();
  return kExitOk;
}

namespace {

int replace_rules(const Online& online, const api::SetRulesRequest& request) {
  const Result<api::Rules> rules = Client(online.control).set_rules(request);
  if (!rules.ok()) return failed(online, rules.error());
  return print(online, *rules, [&]() -> std::string {
    const int count = rules->rules_size();
    if (count == 0) return "no rules any more\n";
    return std::to_string(count) + (count == 1 ? " rule\n" : " rules\n");
  });
}

}  // namespace

int set_rules(const Online& online, const std::string& file) {
  const Result<api::SetRulesRequest> request = read_rules(file);
  return request.ok() ? replace_rules(online, *request) : failed(online, request.error());
}

int clear_rules(const Online& online) {
  return replace_rules(online, {});
}

int set_detail(const Online& online, const DetailOptions& options) {
  Client client(online.control);
  if (options.mode == DetailMode::kOff) {
    const auto request = detail_request<api::StopDetailRequest>(options);
    return print_detail(online, options, client.stop_detail(request));
  }
  if (options.mode == DetailMode::kArmed) {
    auto request = detail_request<api::ArmDetailRequest>(options);
    request.mutable_functions()->Add(options.functions.begin(), options.functions.end());
    return print_detail(online, options, client.arm_detail(request));
  }
  auto request = detail_request<api::StartDetailRequest>(options);
  request.mutable_functions()->Add(options.functions.begin(), options.functions.end());
  if (options.duration.count() > 0) set_duration(request.mutable_duration(), options.duration);
  if (options.pre_roll.count() > 0) set_duration(request.mutable_pre_roll(), options.pre_roll);
  return print_detail(online, options, client.start_detail(request));
}

int set_trigger(const Online& online, const TriggerOptions& options) {
  api::SetTriggersRequest request;
  if (!options.target.empty()) request.mutable_target()->set_any(options.target);
  const bool is_of_threads = options.blocked_longer_than.count() > 0;
  if (!options.functions.empty() || !options.counter.empty() || is_of_threads) {
    api::Trigger& trigger = *request.add_triggers();
    trigger.mutable_functions()->Add(options.functions.begin(), options.functions.end());
    trigger.set_counter(options.counter);
    trigger.set_above(options.above);
    trigger.set_event(!options.counter.empty()          ? api::Trigger::EVENT_COUNTER
                      : is_of_threads                   ? api::Trigger::EVENT_BLOCKED
                      : options.throws                  ? api::Trigger::EVENT_EXCEPTION
                      : options.longer_than.count() > 0 ? api::Trigger::EVENT_LONG_CALL
                                                        : api::Trigger::EVENT_CALL);
    const auto bound = is_of_threads ? options.blocked_longer_than : options.longer_than;
    if (bound.count() > 0) set_duration(trigger.mutable_longer_than(), bound);
    if (options.duration.count() > 0) set_duration(trigger.mutable_duration(), options.duration);
    if (options.pre_roll.count() > 0) set_duration(trigger.mutable_pre_roll(), options.pre_roll);
    trigger.mutable_until_functions()->Add(options.until.begin(), options.until.end());
    trigger.set_times(options.times);
  }
  Client client(online.control);
  const auto response = client.set_triggers(request);
  const int code =
      print_outcomes(online, response, {"AGENT", "SESSION", "FUNCTIONS", "RESULT"},
                     [](const api::TriggersOutcome& outcome) {
                       return std::vector<std::string>{short_name(outcome.session()),
                                                       with_thousands(outcome.functions_matched())};
                     });
  if (response.ok() && request.triggers().empty())
    say_where_detail_stays(online, client, *response);
  return code;
}

int show_triggers(const Online& online, const std::string& target) {
  const auto response = Client(online.control).triggers(target);
  if (!response.ok()) return failed(online, response.error());
  return print(online, *response, [&] {
    Table table({"AGENT", "SESSION", "WHAT", "EVENT", "FIRED"});
    for (const api::TriggersOutcome& outcome : response->outcomes()) {
      for (const api::Trigger& trigger : outcome.triggers()) {
        table.add({short_name(outcome.agent()), short_name(outcome.session()), subject_of(trigger),
                   event_word(trigger.event()), with_thousands(trigger.fired_count())});
      }
    }
    return table.text(online.columns);
  });
}

int show_function_filter(const Online& online, const std::string& session) {
  std::string text;
  const auto end = Client(online.control)
                       .download(session, "manifest.json", 0, [&text](const std::string& part) {
                         text += part;
                         return Status();
                       });
  if (!end.ok()) return failed(online, end.error());
  const Result<storage::Manifest> manifest = storage::manifest_from_json(text);
  if (!manifest.ok()) return failed(online, manifest.error());
  const auto listed = [](const std::vector<std::string>& patterns) {
    std::string all;
    for (const std::string& one : patterns) all += (all.empty() ? "" : ", ") + printable(one);
    return all.empty() ? "-" : all;
  };
  Json document = json_document();
  document["function_filters"] = Json::array();
  Table table({"AT NS", "ONLY", "EXCEPT", "FUNCTIONS"});
  for (const storage::FunctionFilter& filter : manifest->function_filters) {
    table.add({std::to_string(filter.at_ns), listed(filter.only), listed(filter.except),
               with_thousands(filter.functions)});
    document["function_filters"].push_back({{"at_ns", filter.at_ns},
                                            {"only", filter.only},
                                            {"except", filter.except},
                                            {"functions", filter.functions}});
  }
  if (online.json) {
    online.out << json_line(document);
  } else if (manifest->function_filters.empty()) {
    online.out << "every function is recorded\n";
  } else {
    online.out << table.text(online.columns);
  }
  online.out.flush();
  return kExitOk;
}

int set_function_filter(const Online& online, const FilterOptions& options) {
  if (!options.clear && options.only.empty() && options.except.empty()) {
    return failed(online, {Code::kInvalidArgument,
                           "--set takes --only or --except; --clear records everything again"});
  }
  api::SetFunctionFilterRequest request;
  if (!options.target.empty()) request.mutable_target()->set_any(options.target);
  request.mutable_only()->Add(options.only.begin(), options.only.end());
  request.mutable_except()->Add(options.except.begin(), options.except.end());
  return print_outcomes(
      online, Client(online.control).set_function_filter(request),
      {"AGENT", "FUNCTIONS", "PATCHED", "RESULT"},
      [&options](const api::FunctionFilterOutcome& outcome) -> std::vector<std::string> {
        return {options.clear ? "all" : with_thousands(outcome.functions_matched()),
                with_thousands(outcome.functions_patched())};
      });
}

int annotate(const Online& online, const std::string& target, const std::string& text) {
  // As --from and --until take it; the device's own clock is in the JSON.
  const std::string now = time_of_day(std::chrono::system_clock::now());
  return print_outcomes(online, Client(online.control).annotate(target, text),
                        {"AGENT", "SESSION", "AT", "RESULT"},
                        [&now](const api::AnnotateOutcome& outcome) -> std::vector<std::string> {
                          return {short_name(outcome.session()), outcome.has_error() ? "-" : now};
                        });
}

}  // namespace collect::ctl
