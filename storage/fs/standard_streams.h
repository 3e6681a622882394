// Descriptors 0, 1 and 2 of a process that was started without them.
#pragma once

namespace collect::storage {

// A program may be started with its standard streams closed (`collectctl … >&-`). The next files
// and sockets that it opens would get their numbers, and all that it prints would go into a capture
// or to a peer. First thing in main(): takes the free ones of 0, 1 and 2 for good, so that reading
// and writing them fails as before. Programs that are started later find them closed.
void hold_standard_streams();

}  // namespace collect::storage
