// The part of a capture that --from and --until mean: one way of writing times for every command.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "formats/atf/session_reader.h"
#include "formats/calls/thread_calls.h"
#include "formats/core/result.h"
#include "storage/select/time_words.h"

namespace collect::select {

// `times` is asked where a word was given. kInvalidArgument, kNotFound: as parse_moment, with the
// option's name; or the end is before the beginning.
Result<calls::Window> window_of(const WindowWords& words,
                                const std::function<SessionTimes()>& times);

// The times of the threads that were opened; the clock is what the manifest's text says of it.
SessionTimes session_times(const atf::SessionReader& reader,
                           const std::optional<std::string>& manifest);

}  // namespace collect::select
