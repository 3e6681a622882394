// An ELF file as a patch plan sees it: what is loaded where, and what points into its code. Bytes
// in, no trust in them. PATCH.md "What is read".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/core/bytes.h"
#include "formats/core/result.h"
#include "formats/patch/plan_layout.h"

namespace collect::patch {

inline constexpr uint32_t kMaxSegments = 512;
inline constexpr size_t kMaxPointers = 16u << 20;

struct Segment {
  uint64_t address = 0;
  uint64_t memory_bytes = 0;
  Bytes bytes;  // what the file has of it
  bool executable = false;
};

// Views the file's bytes, which outlive it.
class ElfImage {
 public:
  // kUnsupported: not a dynamically linked file for x86-64 or arm64, or one that is prepared
  // already. kDamaged: its headers contradict each other.
  static Result<ElfImage> parse(Bytes file);

  Processor processor() const { return processor_; }
  bool is_arm64() const { return processor_ == Processor::kArm64; }
  const std::vector<Segment>& segments() const { return segments_; }
  // From `address` to the end of its segment in the file; empty: none.
  Bytes at(uint64_t address) const;
  bool is_code(uint64_t address) const;
  bool is_position_independent() const { return is_position_independent_; }

  uint64_t entry() const { return entry_; }
  uint64_t frame_header() const { return frame_header_; }  // address of .eh_frame_hdr; 0: none
  uint64_t image_bytes() const { return image_bytes_; }
  Bytes build_id() const { return build_id_; }
  // Where the word at `slot` leads to when the module is loaded; 0: to another module, or nowhere.
  uint64_t pointer_in(uint64_t slot) const;
  // Addresses of code that data, relocations or the dynamic symbols name; sorted, each once.
  const std::vector<uint32_t>& code_pointers() const { return pointers_; }
  // Beginnings of functions that the compiler left to be changed (-fpatchable-function-entry,
  // -mrecord-mcount, -fxray-instrument), as the file lists them: no one jumps there.
  const std::vector<uint32_t>& listed_entries() const { return entries_; }

 private:
  Status read_segments(Bytes file, const void* header);
  void read_sections(Bytes file, const void* header);
  bool is_entry_list(uint64_t slot) const;
  // What a word of memory holds once the module is loaded.
  Status add_word(uint64_t slot, uint64_t value);
  Status add_entry(uint64_t value);
  Status read_entry_lists();
  Status read_xray_map();
  void read_build_id(Bytes note);
  Status read_dynamic(Bytes dynamic);
  Status read_relocations(uint64_t address, uint64_t bytes);
  Status read_relative(uint64_t address, uint64_t bytes);
  Status read_symbols(uint64_t symbols, uint64_t names, uint64_t names_bytes);
  Status scan_data();
  uint64_t relative_type() const;
  Status add_pointer(uint64_t address);

  std::vector<Segment> segments_;
  std::vector<uint32_t> pointers_;
  struct Range {
    uint64_t begin = 0;
    uint64_t end = 0;
  };
  std::vector<Range> entry_lists_;
  Range xray_map_;
  std::vector<uint32_t> entries_;
  Bytes build_id_;
  Bytes relocations_;
  Bytes symbols_;
  Processor processor_ = Processor::kX86_64;
  uint64_t entry_ = 0;
  uint64_t frame_header_ = 0;
  uint64_t image_bytes_ = 0;
  bool is_position_independent_ = false;
};

}  // namespace collect::patch
