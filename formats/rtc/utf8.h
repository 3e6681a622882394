// Whether bytes are UTF-8 (RFC 3629: no overlong forms, no surrogates, nothing above 10FFFF).
#pragma once

#include "formats/core/bytes.h"

namespace collect::rtc {

bool is_utf8(Bytes bytes);

}  // namespace collect::rtc
