// Which collector this is. The id is drawn once for a root folder and is in it; the epoch is
// another one at each start. Together they name what one collector stored of a session: fleets join
// such parts by the agent's numbers of the records (STORAGE.md "Parts").
#pragma once

#include <string>

#include "formats/core/result.h"
#include "storage/fs/fs.h"
#include "storage/model/session_types.h"

namespace collect::storage {

// Reads `<root>/.collector_id`, or makes it, and the root where needed; the epoch is `unix_ns` in
// milliseconds. kDamaged: the file is no id: remove it, and the collector is another one.
Result<CollectorIdentity> read_collector_identity(Fs& fs, const std::string& root,
                                                  uint64_t unix_ns);
// One that is not written down, for a root that takes no file now.
CollectorIdentity draw_collector_identity(uint64_t unix_ns);

// "0123…ef-1760000000000": id and epoch, as names of parts have them. Empty for one that is not
// known.
std::string collector_name(const CollectorIdentity& collector);

}  // namespace collect::storage
