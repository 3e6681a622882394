#include "proto/conformance/conformance.h"

#include <algorithm>
#include <iterator>

#include "proto/conformance/agents/agent_checks.h"
#include "proto/conformance/collectors/collector_checks.h"

namespace collect::conformance {
namespace {

constexpr std::string_view kSections[] = {"Frame header",
                                          "Frame types",
                                          "Page header",
                                          "Page codecs",
                                          "Opening a connection",
                                          "Proofs",
                                          "Metadata before records",
                                          "Acks and resume",
                                          "Losses",
                                          "Stalls",
                                          "Ending",
                                          "Commands",
                                          "Clock sync",
                                          "Heartbeats",
                                          "Counters",
                                          "Refusals",
                                          "Limits"};

template <class Check>
std::vector<Check> in_order(std::vector<Check> checks) {
  const auto place = [](const Check& check) {
    return std::find(std::begin(kSections), std::end(kSections), check.rule.section) -
           std::begin(kSections);
  };
  std::stable_sort(checks.begin(), checks.end(),
                   [&place](const Check& a, const Check& b) { return place(a) < place(b); });
  return checks;
}

template <class Check>
std::vector<Check> joined(std::initializer_list<std::span<const Check>> parts) {
  std::vector<Check> all;
  for (const auto part : parts) all.insert(all.end(), part.begin(), part.end());
  return in_order(std::move(all));
}

std::vector<CollectorCheck> collector_checks() {
  return joined<CollectorCheck>(
      {collector_frame_checks(), collector_opening_checks(), collector_recording_checks()});
}

std::vector<AgentCheck> agent_checks() {
  return joined<AgentCheck>({agent_session_checks(), agent_action_checks()});
}

template <class Check>
std::vector<Rule> rules_of(const std::vector<Check>& checks) {
  std::vector<Rule> rules;
  for (const Check& check : checks) rules.push_back(check.rule);
  return rules;
}

bool is_wanted(const Settings& settings, const Rule& rule) {
  return settings.only.empty() ||
         std::find(settings.only.begin(), settings.only.end(), rule.name) != settings.only.end();
}

}  // namespace

std::vector<Rule> collector_rules() {
  return rules_of(collector_checks());
}

std::vector<Rule> agent_rules() {
  return rules_of(agent_checks());
}

Status check_collector(const std::string& address, const Settings& settings, const Report& report) {
  const auto where = parse_address(address);
  if (!where.ok()) return where.error();
  const Target target{*where, settings};
  const auto first = FrameLink::connect(*where, settings.timeout);
  if (!first.ok()) return first.error();
  for (const CollectorCheck& check : collector_checks()) {
    if (is_wanted(settings, check.rule)) report(check.rule, check.judge(target));
  }
  return {};
}

Status check_agent(const StartAgent& start, const Settings& settings, const Report& report) {
  Status failure;
  AgentBench bench(settings, [&](const std::string& address) {
    auto program = start(address);
    if (!program.ok()) failure = program.error();
    return program;
  });
  for (const AgentCheck& check : agent_checks()) {
    if (!is_wanted(settings, check.rule)) continue;
    const Verdict verdict = check.judge(bench);
    if (!failure.ok()) return failure;
    report(check.rule, verdict);
  }
  return {};
}

}  // namespace collect::conformance
