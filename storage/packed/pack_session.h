// A session without its thread files, and back. STORAGE.md "Packed sessions".
//
// pack_session() writes one container of the session as its files have it, more densely than while
// it was recorded. Then it proves: each thread file is read from that container as a reader of the
// packed session does, and compared. Only when all came out byte for byte are they removed, and the
// containers from before. Both can be interrupted at any point and called again; a session is
// readable at every moment.
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

enum class PackWay : uint8_t { kPack, kUnpack };

struct PackReport {
  uint64_t files = 0;         // that were removed, or made
  uint64_t file_bytes = 0;    // of these
  uint64_t events = 0;        // of the session
  uint64_t packed_bytes = 0;  // containers and table
};

// After each piece: how much of the work is done, of how much. An error ends the work with it.
using PackProgress = std::function<Status(uint64_t done, uint64_t all)>;

//   kNotFound     no such session
//   kUnsupported  it is not sealed, has no names yet or no thread files, or a thread file is more
//                 than records between its header and footer
//   kDamaged      a thread file is missing or is not whole, as its footer and the manifest say, or
//   is
//                 not what the container then has: the sentence says where
//   kLimit        a stream of another format is larger than is read as a whole
//   kNoSpace, kIo
// Nothing was removed then.
Result<PackReport> pack_session(Fs& fs, const SessionPath& session_path,
                                const PackProgress& progress = {});

// Of a session that is not packed: no files.
//   kNotFound  no such session
//   kDamaged   a container has changed, or a file that is there is not what was packed; what was
//              unpacked before stays
//   kNoSpace, kIo
Result<PackReport> unpack_session(Fs& fs, const SessionPath& session_path,
                                  const PackProgress& progress = {});

}  // namespace collect::storage
