// What the drain thread's side of a stream does when the stream's thread is gone. The rest of it is
// in recorder.h.
#pragma once

#include "agent/ring/stream.h"

namespace collect::agent {

// The process is dead: what its thread was in the middle of is put in order. [drain]
void settle(Stream& stream);
// Gives all of its pages back. [drain]
void release_pages(Stream& stream);

}  // namespace collect::agent
