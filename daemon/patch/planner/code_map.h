// The code of a module: which frames are functions, which are parts of others, and every address
// that something jumps to. PATCH.md "Functions and parts".
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/patch/planner/arm64_instruction.h"
#include "daemon/patch/planner/elf_image.h"
#include "daemon/patch/planner/instruction.h"
#include "daemon/patch/planner/unwind_table.h"
#include "formats/patch/plan_layout.h"

namespace collect::patch {

inline constexpr size_t kMaxTargets = 64u << 20;
inline constexpr size_t kMaxTableEntries = 1u << 16;  // of one jump table

// What is known of a frame; same index as in UnwindTable::frames.
struct Part {
  uint32_t function = 0;  // index of the frame that it is a part of; its own: a function
  bool is_fragment = false;
  bool is_called = false;    // by a call, its address is known elsewhere, or it is listed
  bool has_table = false;    // a jump table of its own was found
  bool has_targets = false;  // pointers lead into it
  Refusal refusal = Refusal::kNone;
};

class CodeMap {
 public:
  // Both outlive it. kLimit: more jumps than there is room for.
  static Result<CodeMap> build(const ElfImage& image, const UnwindTable& table);

  const std::vector<Part>& parts() const { return parts_; }
  Bytes code(const Frame& frame) const {
    return image_->at(frame.begin).first(frame.end - frame.begin);
  }
  // Whether anything leads to `address` other than what is before it.
  bool is_target(uint32_t address) const;
  size_t index_of(const Frame& frame) const {
    return static_cast<size_t>(&frame - table_->frames.data());
  }

 private:
  struct Jump {
    uint32_t from;  // index of a frame
    uint32_t to;    // index of another
    bool inside;    // not at its beginning
  };
  struct Table {
    uint32_t frame;
    JumpTable table;
  };

  CodeMap(const ElfImage& image, const UnwindTable& table) : image_(&image), table_(&table) {}
  void look_at(size_t index);
  void look_at(size_t index, const Instruction& one);
  void refer_to(uint32_t address);
  void note_entry(uint32_t address);
  void find_landing_pads(size_t index);
  void find_tables(size_t index, const std::vector<Instruction>& instructions);
  void read_table(const Table& found, const std::vector<Instruction>& instructions);
  void read_tables();
  void find_fragments();
  void join_fragments();
  bool is_linkage(const std::vector<Instruction>& instructions) const;
  uint32_t root_of(uint32_t index);
  void refuse(size_t index, Refusal why) {
    if (parts_[index].refusal == Refusal::kNone) parts_[index].refusal = why;
  }

  const ElfImage* image_;
  const UnwindTable* table_;
  std::vector<Part> parts_;
  std::vector<uint32_t> targets_;  // sorted at the end
  std::vector<Jump> jumps_;        // between frames
  std::vector<Table> tables_;      // what may be one
};

}  // namespace collect::patch
