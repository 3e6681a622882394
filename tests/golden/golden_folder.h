// Where this tree's own samples and independent readers are: GOLDEN.md. Always there.
#pragma once

#include <filesystem>

namespace collect::reference {

std::filesystem::path golden_folder();

}  // namespace collect::reference
