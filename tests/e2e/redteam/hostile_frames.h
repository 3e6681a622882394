// Everything a peer can say wrongly, one kind of mistake each, with a name for the test's output.
#pragma once

#include <string>
#include <vector>

#include "tests/e2e/raw_agent.h"

namespace collect::e2e {

struct HostileFrame {
  std::string name;
  Octets bytes;
  // Half a frame: nothing is wrong with it until its sender goes away.
  bool unfinished = false;
};

// Wrong in every state of a connection. `first_seq` is the next record number of stream 1.
std::vector<HostileFrame> broken_frames(uint64_t first_seq);
// Well-formed frames that are out of place: those of the collector, and those of agents that do not
// belong on `channel`, or not into the state that the name says.
std::vector<HostileFrame> misplaced_frames(wire::Channel channel);

// Puts the checksums of a frame header right again after its fields were changed.
void seal_header(Octets& frame);

}  // namespace collect::e2e
