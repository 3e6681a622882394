// What a session lacks that is to be converted: threads and records that its manifest counts and
// its files do not have, files that cannot be opened or contradict themselves, an end that never
// came. One place for all targets.
#pragma once

#include "daemon/ctl/convert/convert_log.h"
#include "daemon/ctl/session_files.h"
#include "storage/manifest.h"

namespace collect::ctl {

// Reads every event once, for the checksums.
void check_session_input(const Trace& trace, ConvertLog& log);

// What a conversion says of the session: its manifest as far as one can be read, with what `log`
// misses in it. Never complete where anything is missing, and never recording.
storage::Manifest converted_manifest(const Trace& trace, const ConvertLog& log);

}  // namespace collect::ctl
