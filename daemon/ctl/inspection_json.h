// `collectctl inspect --json` of an ATF session, thread or file, and the words that it shares with
// the form for people.
#pragma once

#include <optional>
#include <string_view>

#include "daemon/ctl/json.h"
#include "daemon/ctl/session_files.h"
#include "daemon/ctl/time_line.h"
#include "daemon/ctl/trace_check.h"

namespace collect::ctl {

std::string_view kind_name(TraceKind kind);
std::string_view first_sentence(const atf::ThreadReport& thread);
// Where the manifest says how its clock relates to others.
std::optional<DeviceClock> device_clock_of(const Trace& trace);

Json inspection_json(const Trace& trace, const TraceReport& report);

}  // namespace collect::ctl
