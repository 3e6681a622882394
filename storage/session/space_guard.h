// How much a session may take: a cap of its own, and how many bytes and files must stay free on its
// disk.
//
// Owned by a Session, used on its storage thread. Asking the system for the free space takes about
// a microsecond; it is asked again after a sixteenth of what was left, so that the disk is looked
// at more often the fuller it gets, and several sessions at once stay above the mark.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "formats/core/page.h"
#include "formats/core/result.h"
#include "storage/fs/fs.h"

namespace collect::storage {

class SpaceGuard {
 public:
  // Zero for each: no such limit.
  struct Limits {
    uint64_t max_session_bytes = 0;
    uint64_t keep_free_bytes = 0;
    uint64_t keep_free_files = 0;
  };
  SpaceGuard(Fs& fs, std::string directory, const Limits& limits)
      : fs_(fs), directory_(std::move(directory)), limits_(limits) {}

  // Before `more` bytes are written by a session that has `stored`, and is about to write `pending`
  // that were admitted before. kLimit: the session may not grow so far. kNoSpace: the disk would
  // have less than is to stay free.
  Status admit(uint64_t stored, uint64_t more, uint64_t pending = 0);
  // How many of the pages, each written so many times, are admitted one after the other; `full`
  // says why not all are.
  size_t room_for(uint64_t stored, std::span<const Page> pages, uint64_t copies, Status& full);
  // Before `more` files and directories are made. kNoSpace: fewer could be made afterwards than are
  // to stay free. The system is asked each time: making one file costs more.
  Status admit_files(uint64_t more);
  // Others fill the disk too: the next admit() asks the system again.
  void look_again() { unasked_bytes_ = 0; }

 private:
  Fs& fs_;
  const std::string directory_;
  const Limits limits_;
  uint64_t unasked_bytes_ = 0;  // may be written before the system is asked again
};

inline constexpr uint64_t kReserveBytes = 64 * 1024;           // manifests, old and new
inline constexpr uint64_t kReserveBytesPerThread = 12 * 1024;  // a block for each footer, its line

// Disk space put aside for sealing, so that a session on a full disk still gets its footers and its
// last manifest: a file of zeros, written as threads come, removed right before sealing.
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
