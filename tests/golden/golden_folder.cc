#include "tests/golden/golden_folder.h"

namespace collect::reference {

std::filesystem::path golden_folder() {
  return COLLECT_GOLDEN_FOLDER;
}

}  // namespace collect::reference
