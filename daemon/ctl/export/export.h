// Sessions into the formats of viewers: time lines (Perfetto, Chrome, speedscope) and call trees
// (folded stacks, pprof, a page for browsers). Streams: memory grows with the open calls, with
// functions that have names, and of call trees with their nodes.
#pragma once

#include <string>
#include <vector>

#include "daemon/ctl/convert/convert_log.h"
#include "daemon/ctl/export/exported_session.h"
#include "formats/core/result.h"

namespace collect::ctl {

enum class ViewFormat : uint8_t { kPerfetto, kChrome, kSpeedscope, kFolded, kPprof, kPage };

// `traces` are ATF sessions; several come into one file, on one time line. The file at `output` is
// there whole or not at all; one that is there already is replaced.
//   kInvalidArgument  a word of the selection makes no sense, or a clock is not known
//   kNotFound         a thread or function that was asked for is in none of the sessions
Status export_sessions(const std::vector<const Trace*>& traces, const ExportSelection& selection,
                       ViewFormat format, const std::string& output, ConvertLog& log);

}  // namespace collect::ctl
