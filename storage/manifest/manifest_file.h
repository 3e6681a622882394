// manifest.json on the disk: replaced as a whole, never seen half.
#pragma once

#include <cstdint>
#include <string>

#include "formats/core/result.h"
#include "storage/fs/fs.h"
#include "storage/manifest/manifest.h"

namespace collect::storage {

// Writes a temporary file and renames it over the old one. With `durable`, file and directory are
// synced in between, so that power loss leaves the old version or the new one.
// `bytes` becomes what was written.
Status write_manifest(Fs& fs, const std::string& directory, const Manifest& manifest, bool durable,
                      uint64_t* bytes = nullptr);

}  // namespace collect::storage
