// The layout of index.lod, and what is kept of a thread as a whole. LOD.md specifies the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "formats/calls/call.h"
#include "formats/calls/function_slots.h"
#include "formats/calls/function_totals.h"
#include "formats/calls/path_tree.h"
#include "formats/calls/read_thread.h"
#include "formats/calls/running_time.h"
#include "formats/calls/thread_calls.h"
#include "formats/core/bytes.h"

namespace collect::calls {

inline constexpr uint8_t kLodMagic[4] = {'A', 'L', 'O', 'D'};
inline constexpr uint32_t kLodVersion = 3;
inline constexpr uint32_t kLodHeaderBytes = 128;
inline constexpr uint32_t kLodNodeBytes = 40;
inline constexpr uint32_t kLodCellBytes = 12;
inline constexpr uint32_t kLodLeafEvents = 4096;   // of a leaf that we write
inline constexpr uint32_t kMaxLeafEvents = 65536;  // positions within a leaf have 16 bits
inline constexpr uint32_t kLodFanOut = 8;          // nodes that the level above joins
inline constexpr uint32_t kMaxLodLevels = 24;
inline constexpr uint32_t kLodRows = 64;        // depths that have cells; deeper calls have none
inline constexpr size_t kMaxLodPaths = 50'000;  // of the call tree
inline constexpr uint32_t kLodTimesAscend = 1;  // flag of the header
inline constexpr uint8_t kLodNoResume = 1;      // flag of a leaf
// A thread with fewer events has no file: they are read as fast.
inline constexpr uint64_t kLeastLodEvents = uint64_t{1} << 20;

// What the file was made of; it is stale where one of these differs.
struct LodSource {
  uint64_t events = 0;
  uint32_t section_checksum = 0;  // of the index file's footer; 0 without one
  uint32_t edges_checksum = 0;    // CRC-32C of the first and the last event, as they are stored
  uint32_t context_checksum = 0;  // lod_context() of the gaps, stalls and times off the processor
  bool operator==(const LodSource&) const = default;
};
uint32_t lod_context(std::span<const Gap> gaps, std::span<const Stall> stalls);

// The calls of one depth in the time of a node.
struct LodCell {
  uint32_t slot = 0;     // the function with the most time, as far as that is known
  uint32_t begun = 0;    // calls that began here; 2^32 - 1: at least as many
  uint16_t covered = 0;  // of the node's time, in 65535ths: of all calls
  uint16_t main = 0;     // the same of calls of `slot`, at least
};
inline constexpr uint16_t kLodWhole = 65535;

// A leaf: events in a row; or the nodes of the level below that it joins.
struct LodNode {               // 40 bytes, little-endian; LOD.md "Node"
  uint64_t first_ns = 0;       //  0  of its first event
  uint64_t data_offset = 0;    //  8  in the file: cells, then the opened calls
  uint32_t least_depth = 0;    // 16  calls that were open all the time
  uint32_t end_depth = 0;      // 20  calls that are open behind it
  uint32_t opened = 0;         // 24  of a leaf: of these, calls that began in it
  uint8_t cells = 0;           // 28
  uint8_t flags = 0;           // 29  kLodNoResume
  uint16_t zero = 0;           // 30
  uint32_t data_checksum = 0;  // 32  CRC-32C of the data
  uint32_t checksum = 0;       // 36  CRC-32C of the bytes before
};
static_assert(sizeof(LodNode) == kLodNodeBytes && offsetof(LodNode, checksum) == 36);
static_assert(std::has_unique_object_representations_v<LodNode>);

// The thread as a whole.
struct LodSummary {
  FunctionSlots slots;
  FunctionTotals totals;
  std::vector<PathNode> paths;
  ThreadCounts counts;
  std::vector<GapOutcome> gaps;
};

}  // namespace collect::calls
