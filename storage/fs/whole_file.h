// Small files that are written and read as a whole: manifests, rules.
#pragma once

#include <cstddef>
#include <string>

#include "formats/core/result.h"
#include "storage/fs/fs.h"

namespace collect::storage {

// Writes `temporary` and renames it to `name`, so that no one sees half of it. With `durable`, file
// and directory are synced, so that power loss leaves the old file or the new one.
Status write_whole_file(Fs& fs, const std::string& directory, const std::string& name,
                        const std::string& temporary, const std::string& text, bool durable);
// kLimit: it is longer than `most_bytes`.
Result<std::string> read_whole_file(Fs& fs, const std::string& path, size_t most_bytes);

}  // namespace collect::storage
