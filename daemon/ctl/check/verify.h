// `collectctl verify PATH`: every check there is, on files, links and the manifest.
#pragma once

#include <iosfwd>

#include "daemon/ctl/captures/capture_options.h"

namespace collect::ctl {

// 0: one line "ok: …", after warnings if there are any. 1: one line per finding, "path: offset N:
// sentence", among them what is missing from a session that is not complete. 2: the path itself
// cannot be read.
int verify(const VerifyOptions& options, std::ostream& out, std::ostream& err);

}  // namespace collect::ctl
