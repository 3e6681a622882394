// The container of a packed session: everything that a sealed session's files have, in pages of
// blocks that readers make at once, compressed (page_packing.h).
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "formats/core/result.h"
#include "storage/fs/fs.h"
#include "storage/manifest/manifest.h"
#include "storage/model/session_layout.h"

namespace collect::storage {

// So many more bytes are done. An error ends the work with it.
using BytesDone = std::function<Status(uint64_t)>;

// Returns its number; `manifest` then names it in place of the others, and is not written. Errors
// as pack_session() has them.
Result<uint32_t> write_packed_container(Fs& fs, const SessionPath& session_path, Manifest& manifest,
                                        const BytesDone& done);

}  // namespace collect::storage
