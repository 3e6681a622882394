// The thread files of a session that is about to be packed, as its new container has them: of
// which pages each consists, and what it has around their records.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/core/result.h"
#include "storage/container/packed_lanes.h"
#include "storage/fs/fs.h"
#include "storage/manifest/manifest.h"

namespace collect::storage {

// Those that are there, by thread, index before detail; without checksums. kUnsupported: one is
// more than the pages' records between its header and footer.
Result<std::vector<PackedLane>> find_lanes(Fs& fs, const std::string& directory,
                                           const Manifest& manifest, uint32_t container);

// From `offset` on a file is not what was found.
Error differs_from_containers(const std::string& path, uint64_t offset);

}  // namespace collect::storage
