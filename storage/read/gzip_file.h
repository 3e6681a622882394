// Captures are often kept packed: dial9 recorders upload .bin.gz. The readers here want bytes that
// stay where they are, so a gzip file is inflated once, into a file without a name that goes away
// with its descriptor.
#pragma once

#include <cstdint>
#include <string>

#include "formats/core/bytes.h"
#include "formats/core/result.h"
#include "storage/read/unnamed_file.h"

namespace collect::read {

// A gzip file may say a thousand times what it holds, so what is unpacked is bounded: by the least
// of these. A recording packs to a tenth or a hundredth of its size. What is larger is refused;
// gzip -dc unpacks it where there is room for it.
inline constexpr uint64_t kMaxInflatedBytes = uint64_t{16} << 30;
inline constexpr uint64_t kMaxInflateRatio = 200;  // of the packed size; beyond the next line
inline constexpr uint64_t kAlwaysInflatedBytes = uint64_t{256} << 20;
inline constexpr uint64_t kInflateFreeShare = 2;  // at most half of what the disk has free

struct InflateLimit {
  uint64_t bytes = 0;
  std::string why;
};
// What holds for a gzip file of `packed_bytes` where `directory` has so many bytes free.
InflateLimit inflate_limit(uint64_t packed_bytes, uint64_t free_bytes,
                           const std::string& directory);

bool looks_like_gzip(Bytes head);

struct Inflated {
  UnnamedFile file;
  std::string missing;  // a sentence where the gzip data ends early or is damaged; else empty
};
// Reads the open gzip file `fd` from its beginning, all members of it, into an unnamed file of the
// temporary directory: as far as it unpacks. `path` is for messages. kTruncated, kDamaged: nothing
// of it unpacks. kLimit: more than may be unpacked, `max_bytes` at most. kNoSpace, kIo: the
// temporary directory.
Result<Inflated> inflate_gzip(int fd, const std::string& path,
                              uint64_t max_bytes = kMaxInflatedBytes);

}  // namespace collect::read
