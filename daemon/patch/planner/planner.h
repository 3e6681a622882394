// Makes the patch plan of a module: its file in, the plan's file out (formats/patch). PATCH.md.
#pragma once

#include <vector>

#include "formats/core/bytes.h"
#include "formats/core/result.h"

namespace collect::patch {

// kUnsupported: no module that can be traced so, and why; kAlreadyExists: it is instrumented
// already; kDamaged: its headers or tables contradict themselves; kLimit: too much of something.
Result<std::vector<uint8_t>> make_plan(Bytes file);

}  // namespace collect::patch
