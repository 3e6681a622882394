// The committed parts that a URL means.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "daemon/ctl/store/store_line.h"
#include "daemon/upload/commit.h"

namespace collect::ctl {

struct ChosenPart {
  std::string prefix;  // "v1/…/part=C-E/"
  upload::Commit commit;
};

struct ChosenParts {
  std::vector<ChosenPart> parts;
  uint64_t unfinished = 0;  // have objects and no COMMIT
};

// In the order of the keys. kNotFound: none; its sentence says whether some are not committed.
Result<ChosenParts> choose_parts(upload::Store& store, StoreLine& line);

// "2 parts are not committed: …": what the error stream gets; empty when there are none.
std::string unfinished_sentence(uint64_t unfinished);

}  // namespace collect::ctl
