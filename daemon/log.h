// The daemon's log: lines on standard error. With any name of a peer in it, a line stays one line
// and carries no escape sequences: the payload goes through printable_sentence as it is formatted,
// after names in the middle of a line were quoted where the line is put together.
#pragma once

#include <spdlog/logger.h>

#include <string>

namespace collect::daemon {

// The pattern, with the net in it.
void set_log_format(spdlog::logger& logger);

// Makes the default logger. `level` as in the settings.
void set_up_log(const std::string& level);

}  // namespace collect::daemon
