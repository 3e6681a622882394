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
  // Prefixes of those that have segments and no COMMIT: what agents were acknowledged can be
  // rebuilt.
  std::vector<std::string> recorded;
  uint64_t unfinished = 0;  // have other objects, and no COMMIT
  uint64_t uncommitted() const { return recorded.size() + unfinished; }
};

// In the order of the keys. kNotFound: none, not even segments; its sentence says whether some are
// not committed. An error is the
// store's.
Result<ChosenParts> choose_parts(upload::Store& store, StoreLine& line);

// "2 parts are not committed: …": what the error stream gets; empty when there are none.
std::string unfinished_sentence(uint64_t unfinished);
// The same of all that are not committed.
std::string uncommitted_sentence(const ChosenParts& chosen);

}  // namespace collect::ctl
