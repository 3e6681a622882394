#include "formats/core/version.h"

namespace collect {

extern const char kVersion[] = COLLECT_VERSION;

}  // namespace collect
