// Library functions that may block, or allocate, recorded as calls although no one has instrumented
// them: so a time off the processor names what it was spent in. The imports of the program and its
// libraries (their global offset tables) lead to a stub, which calls the function
// (library_stubs.S). Not in the archive: a static program has no imports.
//
// A call of a function that may block is brief where it has returned within kBriefNs: too soon to
// have left the processor. Nothing of it stays. Until then its record is tentative (short_calls.h).
// A lock that is free is taken by its trylock, and there is no call. A call that waited for a mutex
// or a read-write lock is a LOCK of the wire, too: with the lock and, where the C library is glibc,
// who had it when the call began; of a read-write lock that is the writer.
#pragma once

#include <cstdint>

namespace collect::agent {

// By Settings::library_calls; "" is none. Redirects the imports of all objects that are loaded now,
// at each start of the agent; those that are loaded later are left alone. Before threads record.
// Weak: null in the archive.
[[gnu::weak]] void redirect_library_calls(const char* wanted);

}  // namespace collect::agent
