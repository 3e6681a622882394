// `collectctl inspect PATH`: what is this, its headers, counts, time range and health.
#pragma once

#include <iosfwd>

#include "daemon/ctl/captures/capture_options.h"

namespace collect::ctl {

// 0: readable; 1: nothing in it can be read as a trace; 2: the path itself cannot be read.
int inspect(const InspectOptions& options, std::ostream& out, std::ostream& err);

}  // namespace collect::ctl
