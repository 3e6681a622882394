// Builds frames into a caller's buffer. Pure: no socket, no allocation, any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "formats/core/bytes.h"
#include "proto/wire/layout.h"

namespace collect::wire {

// CRC-32C of `bytes`, continued from `previous`; given by the caller because the daemon has ISA-L
// and the agent the compiler's intrinsics. Same contract as collect::crc32c.
using Crc32c = uint32_t (*)(Bytes bytes, uint32_t previous);

inline constexpr size_t kPagePrefixBytes = sizeof(FrameHeader) + sizeof(PageHeader);

// The 24 bytes before a control frame's body. `body` is at most kMaxControlBody.
void encode_control_header(FrameType type, Bytes body, Crc32c crc,
                           uint8_t out[sizeof(FrameHeader)]);

// The 96 bytes before a page's bytes, which follow on the wire as they are: send both with one
// gathering write. `page.bytes_crc32c` is taken as given; `sent_bytes` is the length that follows.
void encode_page_prefix(const PageHeader& page, uint32_t sent_bytes, Crc32c crc,
                        uint8_t out[kPagePrefixBytes]);

}  // namespace collect::wire
