// `collectctl conformance`: a collector, or the agent of a program, held to WIRE.md.
#pragma once

#include <chrono>
#include <iosfwd>
#include <string>
#include <vector>

namespace collect::ctl {

inline constexpr int kExitNotChecked = 125;

struct ConformanceOptions {
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
int conformance(const ConformanceOptions& options, std::ostream& out, std::ostream& err);

}  // namespace collect::ctl
