#include "storage/session_health.h"

namespace collect::storage {
namespace {

std::string plural(uint64_t count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

// "12 events and 1 detail record"; empty when there are none.
std::string counted(const HealthFacts& facts) {
  std::string text;
  if (facts.lost_events != 0) text = plural(facts.lost_events, "event");
  if (facts.lost_detail_records != 0) {
    if (!text.empty()) text += " and ";
    text += plural(facts.lost_detail_records, "detail record");
  }
  return text;
}

std::string because(const std::string& reason) {
  return reason.empty() ? "" : " (" + reason + ")";
}

// `what` and how much more: at least what was counted.
std::string unknown_loss(const HealthFacts& facts, const std::string& what) {
  std::string text = what + "; how much is not known";
  if (const std::string count = counted(facts); !count.empty()) {
    text += ", beside the " + count + " counted as lost";
  }
  return text;
}

}  // namespace

SessionHealth health_of(const HealthFacts& facts) {
  SessionHealth health{facts.state, false, facts.lost_events, facts.lost_detail_records, ""};
  switch (facts.state) {
    case SessionState::kComplete:
      if (facts.threads_not_ended != 0) {
        health.state = SessionState::kRecovered;
        health.missing =
            unknown_loss(facts, "the end of " + plural(facts.threads_not_ended, "thread") +
                                    " never came, and what they recorded last may be missing");
        return health;
      }
      health.losses_known = true;
      if (const std::string count = counted(facts); !count.empty()) {
        health.missing = count + " counted as lost while recording";
      }
      return health;
    case SessionState::kRecovered:
      health.missing = unknown_loss(facts, "the program's end of the recording never came" +
                                               because(facts.reason) +
                                               ", and what it recorded last may be missing");
      return health;
    case SessionState::kFailed:
      health.missing = unknown_loss(
          facts, "storing ended" + because(facts.reason) + ", and everything after it is missing");
      return health;
    case SessionState::kRecording:
      break;
  }
  health.missing =
      "not sealed: a collector still writes it, or left it to its next start; without one, "
      "collectctl recover seals it";
  return health;
}

SessionHealth health_without_manifest(const std::string& why) {
  return {SessionState::kRecovered, false, 0, 0,
          why + ", so whether something is missing, and how much, is not known"};
}

SessionHealth health_of(const Manifest& manifest) {
  HealthFacts facts{manifest.state, manifest.reason, 0, manifest.lost_without_stream, 0};
  for (const ManifestThread& thread : manifest.threads) {
    facts.threads_not_ended += thread.ended ? 0 : 1;
    facts.lost_events += thread.lost_events;
    facts.lost_detail_records += thread.lost_detail_records;
  }
  return health_of(facts);
}

}  // namespace collect::storage
