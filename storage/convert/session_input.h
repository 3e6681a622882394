// What a session lacks that is to be converted: threads and records that its manifest counts and
// its files do not have, files that cannot be opened or contradict themselves, an end that never
// came. One place for all targets.
#pragma once

#include "storage/convert/convert_log.h"
#include "storage/manifest/manifest.h"
#include "storage/read/session_files.h"

namespace collect::convert {

// Reads every event once, for the checksums, unless index.lod says that this was done.
void check_session_input(const read::Trace& trace, ConvertLog& log);

// What a conversion says of the session: its manifest as far as one can be read, with what `log`
// misses in it. Never complete where anything is missing, and never recording.
storage::Manifest converted_manifest(const read::Trace& trace, const ConvertLog& log);

}  // namespace collect::convert
