// `collectctl dump PATH…`: the events, as indented text or as JSON lines. Streams: memory does not
// grow with the files.
#pragma once

#include <iosfwd>

#include "daemon/ctl/captures/capture_options.h"

namespace collect::ctl {

// 0: all that was asked for was printed, or the reader of `out` went away; 1: some threads could
// not be read, or a thread or function that was asked for is not there; 2: the path itself cannot
// be read, or an option makes no sense.
int dump(const DumpOptions& options, std::ostream& out, std::ostream& err);

}  // namespace collect::ctl
