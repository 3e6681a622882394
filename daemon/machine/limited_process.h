// How the programs that collectord starts for a watch or a page hold back: a damaged file or a
// large capture may cost neither the machine's memory nor the recording's time.
#pragma once

#include <cstdint>

#include "formats/core/result.h"

namespace collect {

// Limits this process: memory that is no mapped file, no core file, no more privileges, its end
// with that of the daemon, and that niceness.
Status limit_process(uint64_t memory_bytes, int niceness);

}  // namespace collect
