// How whole a session is: the one judgement for all that shows or checks it. STORAGE.md
// "Health" has the table.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "storage/manifest/manifest.h"

namespace collect::storage {

// What a manifest says about the health of its session; any reader of manifests fills it.
struct HealthFacts {
  SessionState state = SessionState::kRecording;
  std::string reason{};            // of the manifest
  uint64_t threads_not_ended = 0;  // whose end, with the program's own counts, never came
  uint64_t lost_events = 0;        // counted, those of threads without a stream included
  uint64_t lost_detail_records = 0;
  std::vector<MissingInput> input_missing{};  // of what it was converted or rebuilt from
  uint64_t input_missing_left_out = 0;
};

struct SessionHealth {
  // Complete only where the program's own last counts came, of every thread. Recording: not sealed.
  SessionState state = SessionState::kRecording;
  // The losses counted are all there are. Otherwise more is missing, and no one can say how much.
  bool losses_known = false;
  uint64_t lost_events = 0;
  uint64_t lost_detail_records = 0;
  std::string missing;  // a sentence; empty: nothing is missing

  bool is_complete() const { return state == SessionState::kComplete; }
};

// "2 events that were cut off"
std::string missing_text(const MissingInput& missing);

SessionHealth health_of(const HealthFacts& facts);
SessionHealth health_of(const Manifest& manifest);
// For a session whose manifest is missing or cannot be read: `why` begins the sentence.
SessionHealth health_without_manifest(const std::string& why);

}  // namespace collect::storage
