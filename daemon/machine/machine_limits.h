// What the system allows this process: threads, address space, open files. gRPC and other libraries
// end the process, or wait for ever, where they get none, so all are asked for before the first of
// them is touched.
#pragma once

#include <cstddef>
#include <cstdint>

#include "formats/core/result.h"

namespace collect {

struct MachineNeeds {
  unsigned threads = 0;
  size_t memory_bytes = 0;  // beside the threads' stacks
  uint64_t open_files = 0;
};

// Before the first thread. Where the address space is limited (RLIMIT_AS), threads take less of it.
void fit_into_address_space();

// Whether there is so much at once. kExhausted: the sentence says which limit is too low.
Status probe_machine(const MachineNeeds& needs);

}  // namespace collect
