// Which files a program is made of, before it runs.
#pragma once

#include <string>
#include <vector>

#include "formats/core/result.h"

namespace collect::ctl {

// The program that the kernel starts for `program`: itself, or the interpreter that its #! line
// names, and of `#!/usr/bin/env NAME` that one.
std::string started_program(const std::string& program);

// Paths of `program` and of the libraries that its dynamic linker loads with it, as that says it
// (`--list`, which runs none of their code). kUnsupported: it is linked statically.
Result<std::vector<std::string>> list_modules(const std::string& program,
                                              const std::vector<std::string>& environment);

// The paths in such a list.
std::vector<std::string> modules_in_list(const std::string& text);

}  // namespace collect::ctl
