// Whether the dynamic linker would load the agent into a program.
#pragma once

#include <string>

namespace collect::ctl {

// "is linked statically", "is set-user-id" …; empty when nothing is known that keeps the agent out.
// Looks at the file alone: of a script, the interpreter decides.
std::string why_no_preload(const std::string& program);

}  // namespace collect::ctl
