// The fixed bytes of the agent protocol: the frame header, frame types and limits; the page header
// is formats/core/page.h. WIRE.md is normative. Used by both ends: no allocation, no exceptions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "formats/core/page.h"

namespace collect::wire {

inline constexpr uint32_t kProtocolVersion = 2;
inline constexpr uint32_t kFrameMagic = 0x31574C43;  // "CLW1" on the wire

// A frame is this header and `body_bytes` of body. The header has its own checksum, so that the
// length is trusted before it is used.
struct FrameHeader {       // 24 bytes, little-endian
  uint32_t magic;          //  0  kFrameMagic
  uint16_t type;           //  4  FrameType; an unknown one is skipped
  uint16_t flags;          //  6  zero
  uint32_t body_bytes;     //  8  at most kMaxControlBody or kMaxPageBody
  uint32_t body_crc32c;    // 12  control frame: of the body; page frame: of its PageHeader
  uint32_t reserved;       // 16  zero
  uint32_t header_crc32c;  // 20  of bytes 0..19
};
static_assert(sizeof(FrameHeader) == 24 && offsetof(FrameHeader, header_crc32c) == 20);
static_assert(std::has_unique_object_representations_v<FrameHeader>);

enum class FrameType : uint16_t {
  // Either channel, to begin and to end it. Bodies are messages of wire.proto of the same name.
  kDial = 1,       // collector -> agent, first frame where the collector dialled
  kHello = 2,      // agent -> collector, first frame of the agent on every connection
  kResume = 3,     // collector -> agent, data channel, before Welcome: positions of known streams
  kWelcome = 4,    // collector -> agent
  kRefuse = 5,     // either way: a reason, then the sender closes
  kChallenge = 6,  // collector -> agent, answers Hello
  kProof = 7,      // agent -> collector, answers Challenge

  // Data channel, agent -> collector, in order with the pages.
  kRecordingStart = 16,
  kModules = 17,
  kStreamOpen = 18,
  kPage = 19,  // body: PageHeader, then the bytes
  kStreamClose = 20,
  kDetailState = 21,
  kRecordingEnd = 22,
  kStalls = 23,

  // Control channel.
  kAck = 32,                 // collector -> agent
  kCommand = 33,             // collector -> agent
  kCommandResult = 34,       // agent -> collector
  kClockProbe = 35,          // collector -> agent
  kClockReply = 36,          // agent -> collector
  kHeartbeat = 37,           // both ways; the agent's carries its counters
  kBye = 38,                 // either way: an orderly end
  kWantFunctionFilter = 39,  // agent -> collector, behind kModules, which go on control there
  kCounters = 40,            // agent -> collector
};

// Whether this version of the protocol has the type. One that it has is an error on the wrong
// channel, from the wrong side or at the wrong time; any other is of a later version, and skipped.
constexpr bool is_known(FrameType type) {
  return (type >= FrameType::kDial && type <= FrameType::kProof) ||
         (type >= FrameType::kRecordingStart && type <= FrameType::kStalls) ||
         (type >= FrameType::kAck && type <= FrameType::kCounters);
}

// Hello.features: what the agent can; Welcome.features: what of that the collector wants.
enum Feature : uint64_t {
  kFeatureColumns = 1u << 0,  // pages may be sent with Codec::kColumns
  // The agent asks for a function filter before it records: WantFunctionFilter.
  kFeatureStartFilter = 1u << 1,
  kFeatureTuples = 1u << 2,  // index pages may be sent with Codec::kTuples
};

static_assert((sizeof(FrameHeader) + sizeof(PageHeader)) % 32 == 0);

// Limits. Checked before memory is taken for a length.
inline constexpr uint32_t kMaxControlBody = 64 * 1024;
inline constexpr uint32_t kMaxPageBytes = 1024 * 1024;
inline constexpr uint32_t kMaxPageBody = sizeof(PageHeader) + kMaxPageBytes;
inline constexpr uint32_t kMaxFrameBytes = sizeof(FrameHeader) + kMaxPageBody;

// The limits of repeated fields; wire.options holds the same numbers for the agent, and a test
// compares them.
inline constexpr uint32_t kMaxModulesPerFrame = 16;
inline constexpr uint32_t kMaxAcksPerFrame = 64;
inline constexpr uint32_t kMaxResumesPerFrame = 64;
inline constexpr uint32_t kMaxStallsPerFrame = 64;
inline constexpr uint32_t kMaxFilterThreads = 256;
inline constexpr uint32_t kMaxFilterFunctions = 4096;
inline constexpr uint32_t kMaxFilterText = 4095;       // bytes, each of WantFunctionFilter
inline constexpr uint32_t kMaxCounters = 64;           // of a process
inline constexpr uint32_t kMaxCounterName = 63;        // bytes
inline constexpr uint32_t kMaxFunctionFilter = 65536;  // SetFunctionFilter, all parts together

}  // namespace collect::wire
