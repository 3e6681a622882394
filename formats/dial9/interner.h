// The writing side of one pool: gives each distinct content an id and collects the entries that the
// stream does not have yet, so that one frame defines many.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/core/bytes.h"
#include "formats/dial9/layout.h"

namespace collect::dial9 {

// Contents that are remembered for reuse. Beyond this the interner starts to forget: the same
// content may then be defined once more under another id, which is right, only longer.
inline constexpr size_t kMaxInternedBytes = size_t{64} << 20;

class Interner {
 public:
  // `item_bytes`: 1 for strings, 8 for stacks, whose entries say their number of addresses.
  Interner(FrameTag tag, uint32_t item_bytes) : tag_(tag), item_bytes_(item_bytes) {}

  // Absent when the content is too long for an entry, or all ids are used.
  std::optional<uint32_t> intern(std::string_view content);
  bool has_pending() const { return count_ != 0; }
  // Bytes of the frame that defines what is pending.
  size_t frame_bytes() const { return count_ == 0 ? 0 : kPoolHeadBytes + entries_.size(); }
  void write_frame(uint8_t* out) const;  // frame_bytes() of them
  void written();                        // the frame is in the stream: nothing is pending
  void restart();                        // for a new sub-stream

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  FrameTag tag_;
  uint32_t item_bytes_;
  uint32_t next_id_ = 0;
  uint32_t count_ = 0;
  size_t remembered_bytes_ = 0;
  std::vector<uint8_t> entries_;
  std::unordered_map<std::string, uint32_t, Hash, std::equal_to<>> ids_;
};

}  // namespace collect::dial9
