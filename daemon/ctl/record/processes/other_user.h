// A process of another user, which root attaches to: it may read its plans, and shows a token to
// the collector, which lets in no agents of other users without one.
#pragma once

#include <sys/types.h>

#include <string>

#include "daemon/patch/plan_store.h"
#include "formats/core/result.h"

namespace collect::ctl {

struct SharedFiles {
  std::string collector_token;  // file that the collector reads
  std::string agent_token;      // the same for that user alone
};

// In the folder, and gone with it.
Result<SharedFiles> share_with(uid_t user, const patch::PlanFolder& folder);

}  // namespace collect::ctl
