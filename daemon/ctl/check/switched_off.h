// The functions that --max-rate switched off, as the session's manifest has them: so that no one
// takes the calls that are missing for none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "storage/manifest/manifest.h"

namespace collect::ctl {

struct SwitchedOff {
  std::string name;  // the id where there is none
  uint64_t calls_per_second = 0;
};

// Those with the most calls first.
std::vector<SwitchedOff> switched_off(const storage::Manifest& manifest);
// For a session on this machine; empty when its manifest cannot be read.
std::vector<SwitchedOff> switched_off(const std::string& session_directory);

// "read_byte (2,100,000 calls/s), next (310,000 calls/s) and 3 more"
std::string switched_off_text(const std::vector<SwitchedOff>& functions);

}  // namespace collect::ctl
