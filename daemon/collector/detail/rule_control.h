// What the standing rules say of an agent that has come.
#pragma once

#include "daemon/collector/detail/recording_control.h"
#include "daemon/collector/detail/rule_book.h"
#include "daemon/control/collector_api.h"
#include "daemon/ingest/ingest.h"
#include "formats/core/task_threads.h"

namespace collect::daemon {

class RuleControl {
 public:
  // Serves GetRulesRequest and SetRulesRequest. All outlive it; rules are written on `files`.
  RuleControl(RuleBook& rules, ingest::Ingest& ingest, RecordingControl& recordings,
              TaskThreads& files, control::Methods& methods);

  void apply(const ingest::AgentSnapshot& agent);

 private:
  void apply(const ingest::AgentSnapshot& agent, const MatchedRule& found);

  RuleBook& rules_;
  ingest::Ingest& ingest_;
  RecordingControl& recordings_;
};

}  // namespace collect::daemon
