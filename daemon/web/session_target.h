// What the path of a session asks for:
//
//   /sessions/session_…/pid_N                                the page
//   …/window?first=NS&last=NS    …/bars?first=NS&last=NS     the data of a window
//   …/perfetto?first=NS&last=NS                              the window as a Perfetto trace
//   …/function?first=NS&last=NS&name=NAME                    the calls of a function in the window
//   …/record?thread=N&record=N                               a detail record
//
// Pure: any thread.
#pragma once

#include <string_view>

#include "daemon/web/page_request.h"
#include "formats/core/result.h"

namespace collect::web {

// The session's name as it is there, within `target`; `request` has what is wanted of it.
// kInvalidArgument: numbers that are none, that are missing, or that nothing asks for.
Result<std::string_view> read_session_target(std::string_view target, PageRequest& request);

}  // namespace collect::web
