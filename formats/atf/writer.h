// Encodes ATF, both layouts: headers, footers, index events, detail records. Pure functions into
// the caller's buffers; storage decides what is written where and when. The agent does not need
// this: its rings hold the structs of layout.h.
//
// Order of a file that survives a crash (FORMAT.md "Writing"): header with zero counts, events,
// footer, sync, header again with the counts, sync.
#pragma once

#include <cstdint>
#include <span>

#include "formats/atf/headers.h"
#include "formats/atf/layout.h"
#include "formats/core/bytes.h"

namespace collect::atf {

using HeaderOut = std::span<uint8_t, kHeaderBytes>;

// Version 1 has 32 bits for the count: a larger one is stored as kMaxEventsV1. Keep below it.
void encode_index_header(const IndexHeader& header, HeaderOut out);
void encode_index_footer(const IndexFooter& footer, HeaderOut out);
void encode_detail_header(const DetailFileHeader& header, HeaderOut out);
void encode_detail_footer(const DetailFooter& footer, HeaderOut out);

// Version 2 drops thread_id and call_depth: it has no place for them.
void encode_index_event(Version version, const IndexEvent& event,
                        std::span<uint8_t, kEventBytes> out);

// Writes the 24-byte record header and the payload; returns the record's length. 0, and nothing
// usable in `out`, when `out` is too small or the record longer than 2^32 - 1.
size_t encode_detail_record(Version version, const DetailRecord& record, MutableBytes out);

// The documented function payload: 100 bytes and the stack. `payload.stack_size` is taken from
// `stack`. Returns its length; 0 when `out` is too small or the stack is over kMaxStackBytes.
size_t encode_function_payload(const FunctionPayload& payload, Bytes stack, MutableBytes out);

// The checksum that a file of this version carries: CRC-32 IEEE (1) or CRC-32C (2) of its events
// section. `previous` is the value so far.
uint32_t section_checksum(Version version, Bytes bytes, uint32_t previous = 0);

}  // namespace collect::atf
