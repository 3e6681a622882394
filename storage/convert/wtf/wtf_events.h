// What our WTF-trace files say of a session beyond the format's own events, and how the way back
// finds it again. The published viewer shows these as any other event.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace collect::convert {

// Instance events.
inline constexpr std::string_view kExceptionEvent = "collect#exception";
inline constexpr std::string_view kReturnEvent = "collect#return";  // of a call that is not there
inline constexpr std::string_view kFunctionArgument = "ascii function";
// The next so many leaves of the zone close calls that never returned by themselves.
inline constexpr std::string_view kUnwindEvent = "collect#unwind";
inline constexpr std::string_view kUnwindArgument = "uint32 calls";

// A mark "12 events are missing (ring_full)" with the value {"lost_events":12,"lost_reasons":1}.
inline constexpr std::string_view kLostEventsKey = "lost_events";
inline constexpr std::string_view kLostReasonsKey = "lost_reasons";

// The member of the header's metadata that is an object of ours: pid, arch, os, clock, and
// start_ns, which is the device clock at the file's timebase; of a session that is not complete its
// state, and what is missing. Name and executable are the header's own.
inline constexpr std::string_view kMetadataKey = "collectord";

}  // namespace collect::convert
