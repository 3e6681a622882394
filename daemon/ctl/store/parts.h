// The committed parts that a URL means.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "daemon/ctl/store/store_line.h"

namespace collect::ctl {

// What its COMMIT says, as far as all parts are known at once: a COMMIT may have 64 MiB.
struct ChosenPart {
  std::string prefix;   // "v1/…/part=C-E/"
  std::string session;  // "session_…/pid_…"
  std::string name;     // "C-E"
  uint64_t files = 0;
  uint64_t bytes = 0;
};

// Its COMMIT cannot be read: the others are there all the same.
struct UnreadablePart {
  std::string prefix;
  Error error;
};

struct ChosenParts {
  std::vector<ChosenPart> parts;
  std::vector<UnreadablePart> unreadable;
  uint64_t unfinished = 0;  // have objects and no COMMIT
};

// In the order of the keys. kNotFound: none; its sentence says whether some are not committed. An
// error is the store's.
Result<ChosenParts> choose_parts(upload::Store& store, StoreLine& line);

// "2 parts are not committed: …": what the error stream gets; empty when there are none.
std::string unfinished_sentence(uint64_t unfinished);

}  // namespace collect::ctl
