// Session directories in every state that STORAGE.md "Recovery" names, made for real: by a session
// that is left, or that is killed at one of its changes. Each recovery is compared with the
// same row.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "storage/manifest/manifest.h"

namespace collect::storage::test {

struct FoundState {
  const char* row;                               // as a test's name
  std::string (*make)(const std::string& root);  // the session directory, below `root`
  // What recovery makes of it.
  bool removed = false;  // nothing was recorded
  SessionState state = SessionState::kRecovered;
  uint64_t events = 0;
  uint64_t lost_events = 0;
  uint64_t detail_records = 0;
  bool has_problems = false;  // something is said about it
  bool seen_offline = true;   // by collectctl, which looks for threads and manifests
  // What is to be seen besides; null: nothing.
  void (*check)(const std::string& directory, const Manifest& manifest) = nullptr;
};

const std::vector<FoundState>& found_states();
inline void PrintTo(const FoundState& found, std::ostream* out) {
  *out << found.row;
}

// The directory, the manifest and the files agree with the row, and nothing of recording is left.
void expect_recovered_as(const FoundState& found, const std::string& directory);

}  // namespace collect::storage::test
