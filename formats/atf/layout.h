// The bytes of ATF, both published layouts. FORMAT.md is the document; offsets are in the margin.
// Included by the agent, whose rings hold these records as they are: no allocation, no exceptions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace collect::atf {

// Header byte 5. The magics are the same in both.
enum class Version : uint8_t { kV1 = 1, kV2 = 2 };

enum class Arch : uint8_t { kX86_64 = 1, kArm64 = 2 };
enum class Os : uint8_t { kIos = 1, kAndroid = 2, kMacos = 3, kLinux = 4, kWindows = 5 };
enum class ClockType : uint8_t { kMachContinuous = 1, kQpc = 2, kBoottime = 3 };

enum class EventKind : uint8_t { kCall = 1, kReturn = 2, kException = 3 };
enum class DetailType : uint16_t { kFunctionCall = 3, kFunctionReturn = 4 };

inline constexpr uint8_t kIndexMagic[4] = {'A', 'T', 'I', '2'};
inline constexpr uint8_t kIndexFooterMagic[4] = {'2', 'I', 'T', 'A'};
inline constexpr uint8_t kDetailMagic[4] = {'A', 'T', 'D', '2'};
inline constexpr uint8_t kDetailFooterMagic[4] = {'2', 'D', 'T', 'A'};
inline constexpr uint8_t kLittleEndian = 1;

inline constexpr size_t kHeaderBytes = 64;  // every header and footer
inline constexpr size_t kFooterBytes = 64;
inline constexpr size_t kEventBytes = 32;  // index event, both versions
inline constexpr uint64_t kEventsOffset = 64;

inline constexpr uint32_t kIndexFlagHasDetailFile = 1u << 0;

inline constexpr uint32_t kNoDetailV1 = 0xFFFFFFFFu;
inline constexpr uint64_t kNoDetail = 0xFFFFFFFFFFFFFFFFull;

struct IndexEventV1 {     // 32 bytes
  uint64_t timestamp_ns;  //  0
  uint64_t function_id;   //  8  module id << 32 | symbol index
  uint32_t thread_id;     // 16  as in the file's header
  uint32_t event_kind;    // 20  EventKind
  uint32_t call_depth;    // 24
  uint32_t detail_seq;    // 28  kNoDetailV1 when absent
};
static_assert(sizeof(IndexEventV1) == 32 && offsetof(IndexEventV1, detail_seq) == 28);
static_assert(std::has_unique_object_representations_v<IndexEventV1>);

struct IndexEventV2 {     // 32 bytes
  uint64_t timestamp_ns;  //  0
  uint64_t function_id;   //  8  module id << 32 | symbol index
  uint64_t detail_seq;    // 16  kNoDetail when absent
  uint8_t event_kind;     // 24  EventKind
  uint8_t reserved[7];    // 25  zero
};
static_assert(sizeof(IndexEventV2) == 32 && offsetof(IndexEventV2, event_kind) == 24);
static_assert(std::has_unique_object_representations_v<IndexEventV2>);

// A detail record is this header and a payload; `total_length` counts both.
struct DetailHeaderV1 {   // 24 bytes
  uint32_t total_length;  //  0
  uint16_t event_type;    //  4  DetailType
  uint16_t flags;         //  6  DetailFlags
  uint32_t index_seq;     //  8
  uint32_t thread_id;     // 12
  uint64_t timestamp_ns;  // 16
};
static_assert(sizeof(DetailHeaderV1) == 24 && offsetof(DetailHeaderV1, timestamp_ns) == 16);
static_assert(std::has_unique_object_representations_v<DetailHeaderV1>);

struct DetailHeaderV2 {   // 24 bytes
  uint32_t total_length;  //  0
  uint16_t event_type;    //  4  DetailType
  uint16_t flags;         //  6  DetailFlags
  uint64_t index_seq;     //  8
  uint64_t timestamp_ns;  // 16
};
static_assert(sizeof(DetailHeaderV2) == 24 && offsetof(DetailHeaderV2, timestamp_ns) == 16);
static_assert(std::has_unique_object_representations_v<DetailHeaderV2>);

inline constexpr size_t kDetailHeaderBytes = 24;

// The documented function payload: 100 bytes, then `stack_size` bytes of stack. Its fields are
// aligned, but its size is not a multiple of 8, so it is written and read as two parts.
struct FunctionPayload {  // 100 bytes on disk; sizeof is 104
  uint64_t function_id;   //   0
  uint64_t x_regs[8];     //   8  arguments (call) or return value (return)
  uint64_t lr;            //  72  return address of the function: its call site
  uint64_t fp;            //  80
  uint64_t sp;            //  88
  uint16_t stack_size;    //  96  0..kMaxStackBytes
  uint16_t reserved;      //  98
};
static_assert(offsetof(FunctionPayload, stack_size) == 96);
inline constexpr size_t kFunctionPayloadBytes = 100;
inline constexpr size_t kMaxStackBytes = 256;
inline constexpr size_t kMaxDetailBytes =
    kDetailHeaderBytes + kFunctionPayloadBytes + kMaxStackBytes;  // of a record that we write

// The payload that the published tracer really writes: a raw block of this length (FORMAT.md).
inline constexpr size_t kTracerPayloadBytes = 516;

// DetailHeader.flags of our agents: which registers of the payload were captured. 0 in files of
// others means "not said".
enum DetailFlags : uint16_t {
  kDetailX0Valid = 1u << 0,  // x_regs[n] is bit n, for n = 0..7
  kDetailLrValid = 1u << 8,
  kDetailFpValid = 1u << 9,
  kDetailSpValid = 1u << 10,
};

}  // namespace collect::atf
