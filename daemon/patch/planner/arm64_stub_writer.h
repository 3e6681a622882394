// Writes the code that a window of arm64 leads to. As stub_writer.h; there a window is one word.
#pragma once

#include "daemon/patch/planner/stub_writer.h"

namespace collect::patch {

void write_arm64_stub(const PartCode& code, const Window& window, uint32_t function, Stubs& stubs);

}  // namespace collect::patch
