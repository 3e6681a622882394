// The call trees of sessions, as folded stacks and as pprof profiles: one tree for each thread, one
// after another. The self time of a function that is not wanted counts to the wanted one around it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "formats/core/byte_sink.h"
#include "storage/convert/convert_log.h"
#include "storage/export/exported_session.h"

namespace collect::exports {

Status export_folded(ExportedSessions& sessions, TimeValue value, ByteSink& out,
                     convert::ConvertLog& log);
Status export_pprof(ExportedSessions& sessions, ByteSink& out, convert::ConvertLog& log);

}  // namespace collect::exports
