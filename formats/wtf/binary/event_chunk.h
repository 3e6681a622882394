// The chunk that a Writer fills: events, the strings that they name, resources. Owned by its
// Writer.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/core/byte_sink.h"
#include "formats/core/bytes.h"
#include "formats/core/result.h"
#include "formats/wtf/binary/arg.h"
#include "formats/wtf/binary/event_types.h"

namespace collect::wtf {

// Limit of texts and arrays in one argument.
inline constexpr size_t kMaxArgumentBytes = size_t{64} << 20;

class EventChunk {
 public:
  // Room for events of a whole chunk: put_plain() needs it.
  void reserve(size_t chunk_bytes);

  // kInvalidArgument for arguments that the type does not take; nothing is added then.
  Status put(const EventType& type, uint32_t us, std::span<const Arg> arguments);
  // An event without arguments, for which there is room.
  void put_plain(uint32_t type, uint32_t us) {
    uint8_t* const at = events_.data() + used_;
    store_le(at, type);
    store_le(at + 4, us);
    used_ += kEventHeaderBytes;
  }
  void note_time(uint32_t us) {
    if (us < first_us_) first_us_ = us;
    if (us > last_us_) last_us_ = us;
  }
  // Its ordinal.
  uint32_t add_resource(uint32_t type, Bytes bytes);

  bool is_empty() const { return used_ == 0 && resources_.empty(); }
  size_t event_bytes() const { return used_; }
  size_t other_bytes() const { return table_.size() + resource_bytes_; }
  bool has_resources() const { return !resources_.empty(); }
  size_t resource_bytes() const { return resource_bytes_; }

  // Hands it to the sink, adds its size to `bytes`, and is empty again.
  Status write(ByteSink& sink, uint32_t id, uint64_t& bytes);

 private:
  struct Resource {
    uint32_t type;
    std::vector<uint8_t> bytes;
  };
  struct TextHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  Status put_argument(const Argument& argument, const Arg& arg);
  Status put_integer(const Argument& argument, const Arg& arg);
  Status put_text(const Argument& argument, const Arg& arg);
  Status put_array(const Argument& argument, const Arg& arg);
  void put_word(uint32_t word);
  void put_bytes(Bytes bytes);
  uint32_t intern(std::string_view text);

  std::vector<uint8_t> events_;  // used_ bytes of it
  size_t used_ = 0;
  std::string table_;
  std::unordered_map<std::string, uint32_t, TextHash, std::equal_to<>> ordinals_;
  std::vector<Resource> resources_;
  size_t resource_bytes_ = 0;
  uint32_t first_us_ = UINT32_MAX;
  uint32_t last_us_ = 0;
};

}  // namespace collect::wtf
