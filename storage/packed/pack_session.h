// A session without its thread files, and back. STORAGE.md "Packed sessions".
//
// pack_session() proves first: each thread file is read from the containers as a reader of the
// packed session does, and compared. Only what came out byte for byte is removed. Both can be
// interrupted at any point and called again; a session is readable at every moment.
//
// The caller holds the root's lock (session_layout.h), and no one else changes the session. Blocks
// for as long as it takes to read it.
#pragma once

#include <cstdint>
#include <functional>

#include "formats/core/result.h"
#include "storage/fs/fs.h"
#include "storage/model/session_layout.h"

namespace collect::storage {

struct PackReport {
  uint64_t files = 0;         // that were removed, or made
  uint64_t file_bytes = 0;    // of these
  uint64_t events = 0;        // of the session
  uint64_t packed_bytes = 0;  // containers and table
};

// After each piece: bytes of thread files that are compared or written, of how many. An error ends
// the work with it.
using PackProgress = std::function<Status(uint64_t done, uint64_t all)>;

//   kNotFound     no such session
//   kUnsupported  it is not sealed, or its containers do not have all of it: the sentence says what
//   kDamaged      a thread file and the containers differ: the sentence says where
// Nothing was removed then.
Result<PackReport> pack_session(Fs& fs, const SessionPath& session_path,
                                const PackProgress& progress = {});

//   kNotFound  no such session, or it is not packed
//   kDamaged   a container has changed; what was unpacked before stays
//   kNoSpace, kIo
Result<PackReport> unpack_session(Fs& fs, const SessionPath& session_path,
                                  const PackProgress& progress = {});

}  // namespace collect::storage
