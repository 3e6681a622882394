// What collect-symbolizer takes from itself before it touches a peer's file. SYMBOLIZE.md
// "Confinement" has the table.
#pragma once

#include <string>

#include "formats/core/result.h"

namespace collect::symbolize {

// First of all: limits of memory, CPU time, descriptors, files and processes; no privileges, no
// dumps; the end of the parent is the end of this process.
Status limit_process();

// When every file is open: from here on nothing but computing, reading what is open and writing
// the answer. A sentence when the kernel, or this build, cannot enforce that.
std::string limit_system_calls();

}  // namespace collect::symbolize
