// The checksum that the published writer stores: the table of the unreflected polynomial 0x04C11DB7
// with the reflected update. It is no CRC-32, but its files exist. Thread-safe: no state.
#pragma once

#include <cstdint>

#include "formats/core/bytes.h"

namespace collect::rtc {

// Continues from the finished value of what came before, as crc32_ieee does.
// published_checksum("123456789") == 0x7EAD5C77.
uint32_t published_checksum(Bytes bytes, uint32_t previous = 0);

}  // namespace collect::rtc
