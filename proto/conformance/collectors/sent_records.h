// The records that a PlayedAgent sends: index events of ATF version 2, calls and returns of one
// function in turn, one a microsecond.
#pragma once

#include "proto/conformance/frame_link.h"

namespace collect::conformance {

inline constexpr uint32_t kRecordBytes = 32;
inline constexpr uint32_t kSentModule = 0;

uint64_t record_ns(uint64_t number);
Octets index_records(uint64_t first_seq, uint32_t count);
// The header of a page with these records, raw.
PageHeader page_header(uint32_t stream, uint64_t first_seq, uint32_t count);
// The whole frame of that page.
Octets page_of(uint32_t stream, uint64_t first_seq, uint32_t count);

}  // namespace collect::conformance
