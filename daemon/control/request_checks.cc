#include "daemon/control/request_checks.h"

#include <fmt/core.h>

#include <algorithm>

namespace collect::control {
namespace {

constexpr int64_t kNanosPerSecond = 1'000'000'000;

Error invalid(std::string message) {
  return {Code::kInvalidArgument, std::move(message)};
}

bool has_no_controls(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 && byte != 0x7f;
  });
}

Status check_duration(std::string_view field, const google::protobuf::Duration& duration) {
  if (duration.seconds() < 0 || duration.nanos() < 0 || duration.nanos() >= kNanosPerSecond) {
    return invalid(std::string(field) + " must not be negative; write seconds, for example \"5s\"");
  }
  if (duration.seconds() > kMaxDetailSeconds) {
    return invalid(fmt::format("{} is longer than {}s; leave it out to record until StopDetail",
                               field, kMaxDetailSeconds));
  }
  return {};
}

constexpr char kFunctionAdvice[] = "a name, a pattern with * or a \"0x…\" id";
constexpr char kThreadAdvice[] = "an id or name=PATTERN";

// Words for functions or threads; `advice` says what an entry may be.
Status check_words(const std::string& field,
                   const google::protobuf::RepeatedPtrField<std::string>& words,
                   const char* advice) {
  if (words.size() > kMaxDetailFunctions) {
    return invalid(
        fmt::format("{} has {} entries, at most {} are allowed; patterns with * cover many", field,
                    words.size(), kMaxDetailFunctions));
  }
  for (const std::string& word : words) {
    if (word.empty() || word.size() > kMaxFunctionPatternBytes || !has_no_controls(word)) {
      return invalid(fmt::format("{} holds an entry that is empty, too long or not text; write {}",
                                 field, advice));
    }
  }
  return {};
}

// What a trigger looks at: functions, or a counter.
Status check_subject(const v1::Trigger& trigger) {
  if (trigger.event() != v1::Trigger::EVENT_COUNTER) {
    if (!trigger.counter().empty()) return invalid("counter goes with EVENT_COUNTER alone");
    if (trigger.event() == v1::Trigger::EVENT_BLOCKED) {
      if (trigger.functions().empty()) return {};
      return invalid("EVENT_BLOCKED looks at all threads: it has no functions");
    }
    if (trigger.functions().empty()) {
      return invalid(std::string("triggers.functions is empty; write ") + kFunctionAdvice);
    }
    return {};
  }
  if (!trigger.functions().empty()) {
    return invalid("EVENT_COUNTER looks at a counter: it has no functions");
  }
  if (trigger.counter().empty() || trigger.counter().size() > kMaxCounterNameBytes) {
    return invalid(
        fmt::format("EVENT_COUNTER needs counter: a name of at most {} bytes, which the program "
                    "gives to collect_counter",
                    kMaxCounterNameBytes));
  }
  return {};
}

// What StartSession and a rule say of the recording.
template <class Request>
Status check_recording(const Request& request) {
  COLLECT_TRY(check_words("functions.only", request.functions().only(), kFunctionAdvice));
  COLLECT_TRY(check_words("functions.except", request.functions().except(), kFunctionAdvice));
  COLLECT_TRY(check_words("detail.functions", request.detail().functions(), kFunctionAdvice));
  COLLECT_TRY(check_duration("detail.duration", request.detail().duration()));
  return check_duration("duration", request.duration());
}

template <class Request>
Result<DetailCommand> command_of(v1::DetailMode mode, const Request& request,
                                 const google::protobuf::RepeatedPtrField<std::string>& functions) {
  COLLECT_TRY(check_selector(request.target()));
  COLLECT_TRY(check_words("threads", request.threads(), kThreadAdvice));
  COLLECT_TRY(check_words("functions", functions, kFunctionAdvice));
  DetailCommand command;
  command.mode = mode;
  command.target = request.target();
  command.threads.assign(request.threads().begin(), request.threads().end());
  command.functions.assign(functions.begin(), functions.end());
  return command;
}

}  // namespace

Status check_name(std::string_view field, const std::string& name) {
  if (name.size() > kMaxNameBytes) {
    return invalid(
        fmt::format("{} has {} bytes, at most {} are allowed", field, name.size(), kMaxNameBytes));
  }
  if (!has_no_controls(name)) return invalid(std::string(field) + " holds control characters");
  return {};
}

uint64_t nanoseconds_of(const google::protobuf::Duration& duration) {
  return static_cast<uint64_t>(duration.seconds() * kNanosPerSecond + duration.nanos());
}

Status check_selector(const v1::Selector& target) {
  COLLECT_TRY(check_name("target.agent", target.agent()));
  COLLECT_TRY(check_name("target.session", target.session()));
  COLLECT_TRY(check_name("target.device", target.device()));
  COLLECT_TRY(check_name("target.process_name", target.process_name()));
  COLLECT_TRY(check_name("target.tag", target.tag()));
  return check_name("target.any", target.any());
}

Status check_attach(const v1::AttachAgentRequest& request) {
  if (!request.address().empty()) return check_name("address", request.address());
  return invalid(
      "address is empty; say where the agent listens, for example "
      "{\"address\": \"127.0.0.1:7720\"} or {\"address\": \"unix:/path\"}");
}

Status check_detach(const v1::DetachAgentRequest& request) {
  if (!request.name().empty()) return check_name("name", request.name());
  return invalid("name is empty; ListAgents gives the names, as in {\"name\": \"agents/1\"}");
}

Status check_delete(const v1::DeleteSessionRequest& request) {
  if (!request.name().empty()) return check_name("name", request.name());
  return invalid(
      "name is empty; ListSessions gives the names, as in "
      "{\"name\": \"sessions/session_20260131_235959/pid_4711\"}");
}

Result<DetailCommand> detail_command_of(const v1::ArmDetailRequest& request) {
  return command_of(v1::DETAIL_MODE_ARMED, request, request.functions());
}

Result<DetailCommand> detail_command_of(const v1::StartDetailRequest& request) {
  COLLECT_TRY(check_duration("duration", request.duration()));
  COLLECT_TRY(check_duration("pre_roll", request.pre_roll()));
  Result<DetailCommand> command = command_of(v1::DETAIL_MODE_ON, request, request.functions());
  if (!command.ok()) return command;
  command->duration_ns = nanoseconds_of(request.duration());
  command->pre_roll_ns = nanoseconds_of(request.pre_roll());
  return command;
}

Result<DetailCommand> detail_command_of(const v1::StopDetailRequest& request) {
  return command_of(v1::DETAIL_MODE_OFF, request, {});
}

Status check_triggers(const v1::SetTriggersRequest& request) {
  COLLECT_TRY(check_selector(request.target()));
  if (request.triggers_size() > kMaxTriggers) {
    return invalid(fmt::format("there are {} triggers, at most {} are allowed",
                               request.triggers_size(), kMaxTriggers));
  }
  for (const v1::Trigger& trigger : request.triggers()) {
    COLLECT_TRY(check_subject(trigger));
    COLLECT_TRY(check_words("triggers.functions", trigger.functions(), kFunctionAdvice));
    COLLECT_TRY(
        check_words("triggers.detail_functions", trigger.detail_functions(), kFunctionAdvice));
    COLLECT_TRY(
        check_words("triggers.until_functions", trigger.until_functions(), kFunctionAdvice));
    COLLECT_TRY(check_duration("triggers.longer_than", trigger.longer_than()));
    COLLECT_TRY(check_duration("triggers.duration", trigger.duration()));
    COLLECT_TRY(check_duration("triggers.pre_roll", trigger.pre_roll()));
    const bool is_long = trigger.event() == v1::Trigger::EVENT_LONG_CALL ||
                         trigger.event() == v1::Trigger::EVENT_BLOCKED;
    if (is_long != (nanoseconds_of(trigger.longer_than()) != 0)) {
      return invalid(
          "EVENT_LONG_CALL or EVENT_BLOCKED, and longer_than go together: how long a call takes "
          "that is meant, or a thread is blocked");
    }
    if (!v1::Trigger::Event_IsValid(trigger.event())) {
      return invalid(
          "triggers.event is not one of EVENT_CALL, EVENT_LONG_CALL, EVENT_EXCEPTION, "
          "EVENT_COUNTER, EVENT_BLOCKED");
    }
  }
  return {};
}

Status check_pid(int32_t pid) {
  if (pid > 0) return {};
  return invalid("pid is no process; say which one, as in {\"pid\": 4711}");
}

Status check_attach_process(const v1::AttachProcessRequest& request) {
  COLLECT_TRY(check_pid(request.pid()));
  COLLECT_TRY(check_words("modules", request.modules(), "a path, or a pattern with *"));
  COLLECT_TRY(check_name("tag", request.tag()));
  if (request.tag().size() > kMaxAgentTagBytes) {
    return invalid(fmt::format("tag has {} bytes, at most {} are allowed", request.tag().size(),
                               kMaxAgentTagBytes));
  }
  if (request.max_rate() > kMostRate) return invalid("max_rate is more than 1000000000");
  if (!v1::Rule::WhenFull_IsValid(request.when_full())) {
    return invalid("when_full is not one of WHEN_FULL_DROP, WHEN_FULL_WAIT, WHEN_FULL_OVERWRITE");
  }
  return {};
}

Status check_function_filter(const v1::SetFunctionFilterRequest& request) {
  COLLECT_TRY(check_selector(request.target()));
  COLLECT_TRY(check_words("only", request.only(), kFunctionAdvice));
  return check_words("except", request.except(), kFunctionAdvice);
}

Status check_start(const v1::StartSessionRequest& request) {
  COLLECT_TRY(check_selector(request.target()));
  return check_recording(request);
}

Status check_rules(const v1::SetRulesRequest& request) {
  if (request.rules_size() > kMaxRules) {
    return invalid(
        fmt::format("there are {} rules, at most {} are allowed", request.rules_size(), kMaxRules));
  }
  for (const v1::Rule& rule : request.rules()) {
    COLLECT_TRY(check_selector(rule.target()));
    const v1::Selector& target = rule.target();
    if (!target.agent().empty() || !target.session().empty() || target.pid() != 0 ||
        !target.any().empty()) {
      return invalid("a rule is about agents to come: its target has device, process_name and tag");
    }
    COLLECT_TRY(check_recording(rule));
    if (!v1::Rule::WhenFull_IsValid(rule.when_full())) {
      return invalid(
          "rules.when_full is not one of WHEN_FULL_DROP, WHEN_FULL_WAIT, WHEN_FULL_OVERWRITE");
    }
    if (rule.spool_mb() > kMaxRuleSpoolMb) {
      return invalid(fmt::format("rules.spool_mb is {}, at most {} are allowed", rule.spool_mb(),
                                 kMaxRuleSpoolMb));
    }
  }
  return {};
}

Status check_annotation(const v1::AnnotateRequest& request) {
  COLLECT_TRY(check_selector(request.target()));
  if (request.text().empty()) {
    return invalid("text is empty; write what the marker says, as in {\"text\": \"door opens\"}");
  }
  if (request.text().size() > kMaxAnnotationBytes) {
    return invalid(fmt::format("text has {} bytes, at most {} are allowed", request.text().size(),
                               kMaxAnnotationBytes));
  }
  return {};
}

Status check_conversion(const v1::ConvertSessionRequest& request) {
  COLLECT_TRY(check_name("name", request.name()));
  if (request.atf_version() == 1 || request.atf_version() == 2) return {};
  return invalid(fmt::format("atf_version is {}; write 1 or 2, as in {{\"atf_version\": 1}}",
                             request.atf_version()));
}

namespace {

Result<uint32_t> interval_ms(const google::protobuf::Duration& interval, uint32_t least,
                             uint32_t most) {
  if (interval.seconds() < 0 || interval.nanos() < 0 || interval.nanos() >= kNanosPerSecond) {
    return invalid("interval must not be negative; write seconds, for example \"0.5s\"");
  }
  const int64_t seconds = std::min<int64_t>(interval.seconds(), most / 1000);
  const int64_t ms = seconds * 1000 + interval.nanos() / 1'000'000;
  return static_cast<uint32_t>(std::clamp<int64_t>(ms, least, most));
}

}  // namespace

Result<uint32_t> watch_interval_ms(const v1::WatchSessionRequest& request) {
  if (!request.has_interval()) return kDefaultWatchIntervalMs;
  return interval_ms(request.interval(), kMinWatchIntervalMs, kMaxWatchIntervalMs);
}

Result<v1::WatchCallsRequest> checked_calls(const v1::WatchCallsRequest& request) {
  COLLECT_TRY(check_name("name", request.name()));
  COLLECT_TRY(check_words("functions", request.functions(), kFunctionAdvice));
  COLLECT_TRY(check_words("threads", request.threads(), kThreadAdvice));
  COLLECT_TRY(check_duration("least_duration", request.least_duration()));
  COLLECT_TRY(check_duration("duration", request.duration()));
  uint32_t between_ms = kDefaultWatchIntervalMs;
  if (request.has_interval()) {
    const auto wanted = interval_ms(request.interval(), kMinCallsIntervalMs, kMaxCallsIntervalMs);
    if (!wanted.ok()) return wanted.error();
    between_ms = *wanted;
  }
  v1::WatchCallsRequest checked = request;
  checked.mutable_interval()->set_seconds(between_ms / 1000);
  checked.mutable_interval()->set_nanos(static_cast<int32_t>(between_ms % 1000 * 1'000'000));
  checked.set_max_calls(request.max_calls() == 0 ? kDefaultMaxCalls
                                                 : std::min(request.max_calls(), kMostMaxCalls));
  return checked;
}

}  // namespace collect::control
