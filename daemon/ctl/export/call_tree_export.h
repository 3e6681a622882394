// The call trees of sessions, as folded stacks and as pprof profiles: one tree for each thread, one
// after another. The self time of a function that is not wanted counts to the wanted one around it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "daemon/ctl/convert/convert_log.h"
#include "daemon/ctl/export/exported_session.h"
#include "formats/core/byte_sink.h"

namespace collect::ctl {

Status export_folded(ExportedSessions& sessions, ByteSink& out, ConvertLog& log);
Status export_pprof(ExportedSessions& sessions, ByteSink& out, ConvertLog& log);

}  // namespace collect::ctl
