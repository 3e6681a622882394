// Sessions into the formats of viewers: time lines (Perfetto, Chrome, speedscope) and call trees
// (folded stacks, pprof, a page for browsers). Streams: memory grows with the open calls, with
// functions that have names, and of call trees with their nodes.
#pragma once

#include <string>
#include <vector>

#include "daemon/ctl/export/exported_session.h"
#include "daemon/ctl/export/target.h"
#include "formats/core/byte_sink.h"
#include "formats/core/result.h"
#include "storage/convert/convert_log.h"

namespace collect::ctl {

// `traces` are ATF sessions; several come into one file, on one time line. The file at `output` is
// there whole or not at all; one that is there already is replaced.
//   kInvalidArgument  `format` is not one of viewers, a word of the selection makes no sense, or a
//                     clock is not known
//   kNotFound         a thread or function that was asked for is in none of the sessions
Status export_sessions(const std::vector<const trace::Trace*>& traces,
                       const ExportSelection& selection, Target format, const std::string& output,
                       convert::ConvertLog& log);

// The same of sessions that are opened and placed, whose windows are chosen.
Status export_view(ExportedSessions& sessions, Target format, ByteSink& out,
                   convert::ConvertLog& log);

}  // namespace collect::ctl
