// Where an online command asks, and where it answers.
#pragma once

#include <cstddef>
#include <ostream>

#include "daemon/ctl/control/connection/control_target.h"
#include "formats/core/result.h"

namespace collect::ctl {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;

// Where a command talks to and prints to.
struct Online {
  ControlTarget control;
  bool json = false;      // message_json.h, one message a line
  bool terminal = false;  // standard output is one: live lines may be rewritten
  std::ostream& out;
  std::ostream& err;
  size_t columns = 0;  // of the terminal; 0: standard output is none
};

// Prints "collectctl: <message>", or with json the error as an object, and returns kExitFailed.
int failed(std::ostream& err, const Error& error, bool json = false);
// failed() where the command prints: as an object to the output stream.
int failed(const Online& online, const Error& error);

}  // namespace collect::ctl
