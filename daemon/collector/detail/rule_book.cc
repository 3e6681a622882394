#include "daemon/collector/detail/rule_book.h"

#include <fmt/core.h>
#include <google/protobuf/util/json_util.h>

#include "daemon/control/request_checks.h"
#include "daemon/control/service/selector.h"
#include "storage/fs/whole_file.h"

namespace collect::daemon {

Status RuleBook::load() {
  const std::string path = fmt::format("{}/{}", root_, kRulesFile);
  if (!fs_.exists(path)) return {};
  const Result<std::string> text = storage::read_whole_file(fs_, path, kMaxRulesBytes);
  if (!text.ok()) return text.error();
  api::Rules rules;
  const auto parsed = google::protobuf::util::JsonStringToMessage(*text, &rules);
  api::SetRulesRequest request;
  *request.mutable_rules() = rules.rules();
  const Status sound = parsed.ok() ? control::check_rules(request)
                                   : Status(Error{Code::kDamaged, std::string(parsed.message())});
  if (!sound.ok()) {
    return Error{Code::kDamaged,
                 fmt::format("{} holds no rules: {}; mend it, or remove it to have none", path,
                             sound.error().message)};
  }
  std::lock_guard lock(mutex_);
  rules_ = std::move(rules);
  return {};
}

Status RuleBook::save(const api::Rules& rules) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  std::string text;
  const auto printed = google::protobuf::util::MessageToJsonString(rules, &text, options);
  if (!printed.ok()) return Error{Code::kInvalidArgument, std::string(printed.message())};
  if (text.size() > kMaxRulesBytes) {
    return Error{Code::kLimit, fmt::format("the rules have {} bytes as JSON, at most {} are kept",
                                           text.size(), kMaxRulesBytes)};
  }
  COLLECT_TRY(fs_.make_directories(root_));
  COLLECT_TRY(storage::write_whole_file(fs_, root_, kRulesFile, std::string(kRulesFile) + ".tmp",
                                        text, true));
  std::lock_guard lock(mutex_);
  rules_ = rules;
  return {};
}

api::Rules RuleBook::rules() const {
  std::lock_guard lock(mutex_);
  return rules_;
}

std::optional<MatchedRule> RuleBook::find(const api::Agent& agent) const {
  std::lock_guard lock(mutex_);
  for (int i = 0; i < rules_.rules_size(); ++i) {
    if (!control::matches(agent, rules_.rules(i).target())) continue;
    return MatchedRule{static_cast<size_t>(i) + 1, rules_.rules(i)};
  }
  return std::nullopt;
}

}  // namespace collect::daemon
