// `collectctl inspect --json` of an ATF session, thread or file, and the words that it shares with
// the form for people.
#pragma once

#include <optional>
#include <string_view>

#include "daemon/ctl/check/trace_check.h"
#include "daemon/ctl/terminal/json.h"
#include "storage/read/session_files.h"
#include "storage/select/time_line.h"

namespace collect::ctl {

std::string_view kind_name(read::TraceKind kind);
std::string_view first_sentence(const atf::ThreadReport& thread);
// Where the manifest says how its clock relates to others.
std::optional<select::DeviceClock> device_clock_of(const read::Trace& trace);

Json inspection_json(const read::Trace& trace, const TraceReport& report);

}  // namespace collect::ctl
