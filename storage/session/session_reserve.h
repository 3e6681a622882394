// Disk space put aside for sealing, so that a session on a full disk still gets its footers and its
// last manifest: a file of zeros, written as threads come, removed right before sealing.
#pragma once

#include <cstdint>
#include <string>

#include "formats/core/result.h"
#include "storage/fs/fs.h"

namespace collect::storage {

inline constexpr uint64_t kReserveBytes = 64 * 1024;           // manifests, old and new
inline constexpr uint64_t kReserveBytesPerThread = 12 * 1024;  // a block for each footer, its line

class SessionReserve {
 public:
  SessionReserve(Fs& fs, const std::string& directory);
  Status grow_to(uint64_t bytes);  // never shrinks
  Status release();                // nothing to do when there is none

 private:
  Fs& fs_;
  const std::string path_;
  uint64_t bytes_ = 0;
};

}  // namespace collect::storage
