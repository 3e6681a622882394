// Names of functions for a session that has none yet, because it still records or was sealed just
// now. They are looked up as the collector does it after the seal (daemon/symbolize), and kept in
// memory alone: the session on disk is not changed.
#pragma once

#include <chrono>

#include "daemon/symbolize/symbolizer.h"
#include "formats/core/result.h"
#include "storage/read/session_files.h"

namespace collect::ctl {

// Whether its manifest says that it is not sealed.
bool is_recording(const read::Trace& trace);

// Puts names into trace.manifest. Does nothing for a session whose names were looked up, and for
// one of another program. What a lookup says about a file costs the names of that file; errors are
// those of SessionNames::step(), and those of a manifest that cannot be read.
Status name_functions(read::Trace& trace, const symbolize::SymbolizerOptions& options,
                      std::chrono::milliseconds most_time);

}  // namespace collect::ctl
