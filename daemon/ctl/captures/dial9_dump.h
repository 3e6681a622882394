// `collectctl dump` of a dial9 stream, in the file's order: one line per event for people, the
// room's JSON lines (formats/dial9/json_lines.h) for programs.
#pragma once

#include <cstdint>
#include <string>

#include "daemon/ctl/captures/bytes_done.h"
#include "daemon/ctl/captures/capture_options.h"
#include "daemon/ctl/terminal/text_out.h"
#include "formats/core/bytes.h"
#include "formats/core/result.h"
#include "storage/select/time_window.h"

namespace collect::ctl {

std::string dial9_seconds(uint64_t ns);  // "12.000000345"

// --function takes globs of event names; --from, --until and --limit select as well. JSON lines of
// a selection have no pool frames, since the events show what their ids mean, and their last line
// says how reading ended, which behind a limit is "end". kInvalidArgument: an option that has no
// meaning here. Other errors: where the stream broke off.
Status dump_dial9(const DumpOptions& options, const calls::Window& window, Bytes file, TextOut& out,
                  const BytesDone& done);

}  // namespace collect::ctl
