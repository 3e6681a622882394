// A capture as a page for a browser (formats/html/FORMAT.md): totals of functions, a call tree and
// the activity of each thread.
#pragma once

#include <cstddef>

#include "daemon/ctl/convert/convert_log.h"
#include "daemon/ctl/export/exported_session.h"
#include "formats/core/byte_sink.h"

namespace collect::ctl {

inline constexpr size_t kMaxPageNodes = 50'000;     // of a thread's tree
inline constexpr size_t kMaxPageIntervals = 2'000;  // stalls of a thread, and gaps
inline constexpr size_t kPageParts = 800;           // of the time line

struct PageOptions {
  bool can_refresh = false;  // whoever serves it makes a newer one when it is loaded again
};

Status export_page(ExportedSessions& sessions, const PageOptions& options, ByteSink& out,
                   ConvertLog& log);

}  // namespace collect::ctl
