// What the manifests of several parts say together: everything but the records and what is missing
// of them, which the records themselves show.
#pragma once

#include <vector>

#include "storage/manifest/manifest.h"
#include "storage/rebuild/merge_parts.h"

namespace collect::storage {

// `parts`: at least one, the earliest first. Threads have the agent's counts: index_next and
// detail_next the highest numbers, lost_events what was lost without a number. Totals are empty.
Manifest merged_manifest(const std::vector<SessionPart>& parts);

}  // namespace collect::storage
