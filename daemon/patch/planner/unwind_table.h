// Where functions begin and end, and where in them the stack pointer is right below the
// caller's frame: from .eh_frame_hdr and .eh_frame, which stripped files keep. PATCH.md "What is
// read".
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/patch/planner/elf_image.h"
#include "formats/core/result.h"

namespace collect::patch {

inline constexpr uint32_t kMaxFrames = 4u << 20;
inline constexpr size_t kMaxRows = 64u << 20;
inline constexpr size_t kMaxLandingPads = 16u << 20;

// From `address` to the next row of its frame.
struct UnwindRow {
  uint32_t address = 0;
  bool at_return = false;  // the canonical frame address is rsp + 8; arm64: sp
};

// What one FDE describes.
struct Frame {
  uint32_t begin = 0;
  uint32_t end = 0;
  uint32_t first_row = 0;  // in rows
  uint32_t row_count = 0;
  uint32_t first_pad = 0;  // in landing_pads
  uint32_t pad_count = 0;
  bool is_signal = false;
  bool is_understood = true;  // its rows and landing pads
};

struct UnwindTable {
  std::vector<Frame> frames;  // by ascending address; they do not overlap
  std::vector<UnwindRow> rows;
  std::vector<uint32_t> landing_pads;
  // Functions of this module that unwinders call while they leave frames; sorted.
  std::vector<uint64_t> personalities;

  // kUnsupported: the file has none, or one of another form than linkers write. kDamaged: the table
  // contradicts itself.
  static Result<UnwindTable> read(const ElfImage& image);

  bool at_return(const Frame& frame, uint32_t address) const;
  // The frame that has the address; null: none.
  const Frame* find(uint32_t address) const;
};

}  // namespace collect::patch
