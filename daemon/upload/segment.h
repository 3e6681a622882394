// A segment: what was done to a session's files, as one object, so that the same can be done to a
// copy. UPLOAD.md "Segments". No state; any thread.
//
//   segment = "CSEGMNT1"  u32 actions  u32 0  { action }  u32 CRC-32C of all before
//   action  = u8 kind  u8 0  u16 path bytes  u32 data bytes  u64 offset  path  data
//
// Little-endian. A path is one that a session's file may have; of kName,
// "session_…/pid_…".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/core/bytes.h"
#include "formats/core/result.h"

namespace collect::upload {

inline constexpr size_t kMaxSegmentBytes = 4u << 20;  // of data; then another one begins
inline constexpr size_t kMaxSegmentActions = 4096;
inline constexpr size_t kMaxSegmentPathBytes = 128;
inline constexpr size_t kSegmentHeadBytes = 16;
inline constexpr size_t kSegmentActionBytes = 16;
inline constexpr size_t kMaxSegmentObjectBytes =
    kMaxSegmentBytes + kSegmentHeadBytes + 4 +
    kMaxSegmentActions * (kSegmentActionBytes + kMaxSegmentPathBytes);

enum class SegmentKind : uint8_t {
  kRemove = 1,  // the file; nothing where it is not there
  kCut = 2,     // to `offset` bytes; the file is made where it is not there
  kWrite = 3,   // `data` at `offset`; the file is made where it is not there
  kName = 4,    // nothing: the path is the session's name; the first of a copy
};

struct SegmentAction {
  SegmentKind kind{};
  std::string_view path{};
  uint64_t offset = 0;
  Bytes data{};  // of kWrite
};

// Put together in one buffer, which is kept.
class SegmentBuilder {
 public:
  SegmentBuilder() { begin(); }
  // How many bytes of data still go into it; 0: finish it first.
  size_t room() const;
  // A session's path, and `data` has room.
  void add(const SegmentAction& action);
  // The same, and `data` is filled by the caller before anything else is asked.
  MutableBytes add_write(std::string_view path, uint64_t offset, size_t bytes);
  // Of the last one: so many of its bytes are taken back.
  void take_back(size_t bytes);
  bool is_empty() const { return actions_ == 0; }
  Bytes finish();  // valid until begin()
  void begin();

 private:
  std::vector<uint8_t> bytes_;
  size_t last_ = 0;  // where the last action begins
  uint32_t actions_ = 0;
  size_t data_bytes_ = 0;
};

// What points into `object`. kDamaged: it is none; kLimit: more than the limits above.
Result<std::vector<SegmentAction>> parse_segment(Bytes object);

}  // namespace collect::upload
