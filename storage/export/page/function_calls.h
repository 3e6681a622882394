// The calls of one function of a capture, as the page asks for them: how long they took, each
// duration with an example, and the slowest ones. FORMAT.md of formats/html "Calls of a function".
#pragma once

#include <cstddef>
#include <string_view>

#include "formats/core/byte_sink.h"
#include "formats/core/result.h"
#include "formats/html/writer.h"
#include "storage/convert/convert_log.h"
#include "storage/export/exported_session.h"

namespace collect::exports {

inline constexpr size_t kSlowestCalls = 20;

// In the windows of the sessions. Functions of one name are one. Reads the events of the threads
// that called it, on all processors; memory is the same for any number of calls. A name that no
// function has gives no calls.
html::FunctionCalls find_function_calls(ExportedSessions& sessions, std::string_view name,
                                        convert::ConvertLog& log);
// As the page's server answers.
Status export_function_calls(ExportedSessions& sessions, std::string_view name, ByteSink& out,
                             convert::ConvertLog& log);

}  // namespace collect::exports
