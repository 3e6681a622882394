// What the drain thread's side of a stream does when the stream's thread is gone. The rest of it is
// in recorder.h.
#pragma once

#include "agent/ring/stream.h"

namespace collect::agent {

// The process is dead: what its thread was in the middle of is put in order. [drain]
void settle(Stream& stream);
// When pages are short: takes open pages from threads that write nothing, or wait, whose records
// are all acknowledged; so that there may be more threads than pages. [drain]
void take_idle_pages();
// Gives all of its pages back. [drain]
void release_pages(Stream& stream);

}  // namespace collect::agent
