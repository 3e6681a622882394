// `collectctl dump` of a WTF-trace: every event that the published viewer lists, in the order of
// the file, as text with scopes indented within their zone, or as JSON lines:
//
//   {"zone":"main","zone_index":0,"time_us":15,"event":"draw","kind":"scope","depth":0,
//    "args":{"n":7}}
//
// `kind` is scope, leave or instance; a leave has the name of the scope that it ends, if any.
#pragma once

#include "daemon/ctl/captures/bytes_done.h"
#include "daemon/ctl/captures/capture_options.h"
#include "daemon/ctl/terminal/text_out.h"
#include "formats/core/bytes.h"
#include "formats/core/result.h"
#include "storage/select/time_window.h"

namespace collect::ctl {

// As CaptureFormat::dump. Words of `functions` are event names, exact or with * and ?; times are
// nanoseconds since the file's timebase.
Status dump_wtf(const DumpOptions& options, const calls::Window& window, Bytes file, TextOut& out,
                const BytesDone& done);

}  // namespace collect::ctl
