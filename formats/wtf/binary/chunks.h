// The chunks of a file of format version 10, front to back. Borrows the file's bytes. A damaged or
// cut chunk is given as far as it is there, and the walk continues at the next place that holds up
// as a chunk; what was passed over is a finding.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/core/bytes.h"
#include "formats/wtf/finding.h"
#include "formats/wtf/layout.h"

namespace collect::wtf {

// Parts of one chunk beyond this many are left out, with a finding.
inline constexpr size_t kMaxParts = 65536;

struct Part {
  uint32_t type = 0;
  bool cut = false;  // the file ends within it
  Bytes bytes;       // without padding
  uint64_t offset = 0;
};

struct Chunk {
  uint32_t id = 0;
  uint32_t type = 0;
  uint32_t start_time = kNoTime;
  uint32_t end_time = kNoTime;
  bool cut = false;     // not all of it is there
  uint64_t offset = 0;  // of its header
  uint64_t length = 0;  // as stated
  std::vector<Part> parts;

  // The last one of that type, as the published viewer has it; null if there is none.
  const Part* find(PartType part) const;
};

class ChunkCursor {
 public:
  // `file` begins with the file header, which the caller has looked at.
  ChunkCursor(Bytes file, Findings& findings) : file_(file), findings_(&findings) {}

  bool next(Chunk& chunk);
  uint64_t offset() const { return at_; }  // of the chunk that next() looks at next

 private:
  bool damaged();
  bool plausible(uint64_t offset) const;
  uint64_t search(uint64_t from) const;
  void read_parts(Chunk& chunk, uint64_t end);
  void check_parts(const Chunk& chunk);

  Bytes file_;
  Findings* findings_;
  uint64_t at_ = kFileHeaderBytes;
};

}  // namespace collect::wtf
