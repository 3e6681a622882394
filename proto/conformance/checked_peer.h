// What collect-conformance does: a collector, or the agent of a program, held to WIRE.md.
#pragma once

#include <chrono>
#include <iosfwd>
#include <string>
#include <vector>

#include "formats/core/result.h"

namespace collect::conformance {

inline constexpr int kExitUsage = 2;
inline constexpr int kExitNotChecked = 125;

struct PeerOptions {
  std::string address;               // of a collector …
  std::vector<std::string> program;  // … or what starts the agent, with its arguments
  std::string token_file;
  std::vector<std::string> checks;  // names; empty: all
  std::chrono::milliseconds timeout{10'000};
  bool list = false;
  bool json = false;
};

// 0: no check failed. 1: one did. 2: a name that is no check, or neither or both of address and
// program. 125: nothing could be checked. Ends the program that it has started also when a signal
// ends this one.
int check_peer(const PeerOptions& options, std::ostream& out, std::ostream& err);

// One line on `err`, or with `json` the error as an object on `out`. Returns `exit_code`.
int refuse(const Error& error, int exit_code, bool json, std::ostream& out, std::ostream& err);

}  // namespace collect::conformance
