// Why a session was sealed as it is, for its manifest.
#pragma once

#include <string>

#include "formats/core/result.h"

namespace collect::storage {

// "no space: /x/index.atf: write at 4096: No space left on device". The code's name comes first:
// summaries in one line (session_health.h) keep what is before the colon.
std::string seal_reason(const Error& error);

}  // namespace collect::storage
