// Sessions into the formats of viewers: time lines (Perfetto, Chrome, speedscope), call trees
// (folded stacks, pprof, a page for browsers), and tables (Parquet). Streams: memory grows with the
// open calls, with functions that have names, and of call trees with their nodes.
#pragma once

#include <string>
#include <vector>

#include "formats/core/byte_sink.h"
#include "formats/core/result.h"
#include "storage/convert/convert_log.h"
#include "storage/export/exported_session.h"
#include "storage/export/target.h"

namespace collect::exports {

// `traces` are ATF sessions; several come into one file, on one time line. The file at `output` is
// there whole or not at all; one that is there already is replaced. For Parquet it is a directory.
//   kInvalidArgument  `format` is not one of viewers, a word of the selection makes no sense, or a
//                     clock is not known
//   kNotFound         a thread or function that was asked for is in none of the sessions
Status export_sessions(const std::vector<const read::Trace*>& traces,
                       const ExportSelection& selection, Target format, const std::string& output,
                       convert::ConvertLog& log);

// Exports sessions that are opened and placed, whose windows are chosen; not for Parquet. `value`
// is of folded stacks, and known.
Status export_view(ExportedSessions& sessions, Target format, ByteSink& out,
                   convert::ConvertLog& log, TimeValue value = TimeValue::kWall);

}  // namespace collect::exports
