// The standing rules: what becomes of agents that are still to come. Kept in rules.json beside the
// sessions, as JSON of the message Rules.
//
// Thread-safe; save() is called from one thread at a time.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "collect/control/v1/control.pb.h"
#include "formats/core/result.h"
#include "storage/fs/fs.h"

namespace collect::daemon {

namespace api = ::collect::control::v1;

inline constexpr char kRulesFile[] = "rules.json";
inline constexpr size_t kMaxRulesBytes = 4u << 20;

struct MatchedRule {
  size_t number = 0;  // counts from 1, for messages
  api::Rule rule;
};

class RuleBook {
 public:
  RuleBook(storage::Fs& fs, std::string root) : fs_(fs), root_(std::move(root)) {}

  // No file, no rules. kDamaged: the file holds none; the message says what to do.
  Status load();
  // On disk before they hold.
  Status save(const api::Rules& rules);
  api::Rules rules() const;
  // The first that is about the agent.
  std::optional<MatchedRule> find(const api::Agent& agent) const;

 private:
  storage::Fs& fs_;
  const std::string root_;
  mutable std::mutex mutex_;
  api::Rules rules_;  // guarded by mutex_
};

}  // namespace collect::daemon
