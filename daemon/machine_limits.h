// What the system allows this process: threads and address space. gRPC and other libraries end the
// process where they get neither, so both are asked for before the first of them is touched.
#pragma once

#include "formats/core/result.h"

namespace collect::daemon {

// Before the first thread. Where the address space is limited (RLIMIT_AS), threads take less of it.
void fit_into_address_space();

// kExhausted: the system does not start as many threads as a collector has at work, or has no
// memory for it; the sentence says which limit is too low.
Status probe_machine();

}  // namespace collect::daemon
