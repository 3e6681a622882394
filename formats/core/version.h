// The version of the project, which CMakeLists.txt says.
#pragma once

namespace collect {

extern const char kVersion[];  // "0.1.0"

}  // namespace collect
