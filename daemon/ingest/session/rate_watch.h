// Counts the calls of each function among the events that arrive, for agents that ask for it
// (RecordingStart.max_rate): functions that are called more often than that in a second are to be
// switched off.
//
// One session's; its writer's thread. Memory is bounded by kMaxRatedFunctions.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "formats/atf/layout.h"
#include "formats/core/keyed_hash.h"
#include "formats/core/page.h"

namespace collect::ingest {

// Functions that are counted at a time. When there are more, counting begins again.
inline constexpr uint32_t kMaxRatedFunctions = 8'192;
// Hot functions that wait to be taken; later ones are found again in the next second.
inline constexpr size_t kMaxHotFunctions = 256;

struct HotFunction {
  uint64_t function_id = 0;
  uint64_t calls_per_second = 0;
};

class RateWatch {
 public:
  RateWatch(atf::Version version, uint32_t max_rate);

  static constexpr uint64_t kMaxBytes = uint64_t{2} * kMaxRatedFunctions * 80;  // of memory

  // A page of an index lane; its first `known` records were counted before.
  void look_at(const Page& page, uint64_t known);
  // Those found since the last call. A function that stays hot is found once in each second.
  std::vector<HotFunction> take();

 private:
  // Time is cut into pieces of 2^30 ns. Threads arrive one behind the other: a function has the
  // last few pieces.
  static constexpr unsigned kPieceBits = 30;
  static constexpr uint32_t kPieces = 4;
  struct Piece {
    uint64_t first_ns = 0;  // of its calls
    uint32_t calls = 0;
  };
  struct Slot {
    uint64_t function_id = 0;
    std::array<Piece, kPieces> pieces{};  // by piece number modulo kPieces; no calls: unused
    bool is_used = false;
  };

  static_assert(2 * kMaxRatedFunctions * sizeof(Slot) <= kMaxBytes);

  Slot& slot_of(uint64_t function_id);
  size_t find(uint64_t function_id) const;
  void make_room();
  void count(Slot& slot, uint64_t at_ns);

  const atf::Version version_;
  const uint64_t most_calls_;  // in a piece
  const HashKey key_ = process_hash_key();
  std::vector<Slot> slots_;  // open addressing, at most half of them used; a power of two
  uint32_t used_ = 0;
  std::vector<HotFunction> hot_;  // to be taken
};

}  // namespace collect::ingest
