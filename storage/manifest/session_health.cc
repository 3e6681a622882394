#include "storage/manifest/session_health.h"

#include <fmt/core.h>

#include <algorithm>

namespace collect::storage {
namespace {

std::string plural(uint64_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
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
  return reason.empty() ? "" : fmt::format(" ({})", reason);
}

// `what` and how much more: at least what was counted.
std::string unknown_loss(const HealthFacts& facts, const std::string& what) {
  std::string text = what + "; how much is not known";
  if (const std::string count = counted(facts); !count.empty()) {
    text += fmt::format(", beside the {} counted as lost", count);
  }
  return text;
}

// "2 events that were cut off, the end of the stream and 3 more".
std::string listed(const HealthFacts& facts) {
  constexpr size_t kMostListed = 3;
  std::string text;
  const size_t shown = std::min(facts.input_missing.size(), kMostListed);
  for (size_t i = 0; i < shown; ++i) {
    if (i != 0) text += ", ";
    text += missing_text(facts.input_missing[i]);
  }
  const uint64_t more = facts.input_missing.size() - shown + facts.input_missing_left_out;
  if (more != 0) text += fmt::format(" and {} more", more);
  return text;
}

}  // namespace

std::string missing_text(const MissingInput& missing) {
  return (missing.count == 0 ? "" : fmt::format("{} ", missing.count)) + missing.what;
}

SessionHealth health_of(const HealthFacts& facts) {
  SessionHealth health{facts.state, false, facts.lost_events, facts.lost_detail_records, ""};
  const bool is_from_less = !facts.input_missing.empty() || facts.input_missing_left_out != 0;
  if (is_from_less &&
      (facts.state == SessionState::kComplete || facts.state == SessionState::kRecovered)) {
    health.state = SessionState::kRecovered;
    health.missing = unknown_loss(facts, "what it was made from lacked " + listed(facts));
    return health;
  }
  switch (facts.state) {
    case SessionState::kComplete:
      if (facts.threads_not_ended != 0) {
        health.state = SessionState::kRecovered;
        health.missing = unknown_loss(
            facts,
            fmt::format("the end of {} never came, and what they recorded last may be missing",
                        plural(facts.threads_not_ended, "thread")));
        return health;
      }
      health.losses_known = true;
      if (const std::string count = counted(facts); !count.empty()) {
        health.missing = count + " counted as lost while recording";
      }
      return health;
    case SessionState::kRecovered:
      health.missing =
          unknown_loss(facts, fmt::format("the program's end of the recording never came{}, and "
                                          "what it recorded last may be missing",
                                          because(facts.reason)));
      return health;
    case SessionState::kFailed:
      health.missing =
          unknown_loss(facts, fmt::format("storing ended{}, and everything after it is missing",
                                          because(facts.reason)));
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
  HealthFacts facts{.state = manifest.state,
                    .reason = manifest.reason,
                    .lost_events = manifest.lost_without_stream,
                    .input_missing = manifest.input_missing,
                    .input_missing_left_out = manifest.input_missing_left_out};
  for (const ManifestThread& thread : manifest.threads) {
    facts.threads_not_ended += thread.ended ? 0 : 1;
    facts.lost_events += thread.lost_events;
    facts.lost_detail_records += thread.lost_detail_records;
  }
  return health_of(facts);
}

}  // namespace collect::storage
