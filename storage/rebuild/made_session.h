// What is common to the sessions that are made of other ones: of a sealed one in the other ATF
// version (session_conversion.h), of one that still records (session_snapshot.h).
//
// Such a session is built below <root>/.converting and renamed when it is sealed, so that it is
// there whole or not at all. The caller holds the root's lock, and makes one session at a time. May
// block on the disk for as long as it takes to read and write a session.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "formats/core/result.h"
#include "storage/model/session_layout.h"
#include "storage/rebuild/session_rebuild.h"

namespace collect::storage {

struct MadeSession {
  SessionPath session_path;
  ReplayReport report;
  Manifest manifest;  // as it is on the disk
};

// After each piece: bytes of records that were read, of how many. An error ends the work with it,
// and nothing is left.
using MakingProgress = std::function<Status(uint64_t done, uint64_t all)>;

// A session of so many threads and bytes can be stored. kNoSpace: less would be free than is to
// stay free. kLimit: max_session_bytes.
Status check_room(Fs& fs, const SessionOptions& options, uint64_t bytes, uint64_t threads);

// Where sessions are built: the same options, another root, no containers.
SessionOptions making_options(const SessionOptions& options);

// Takes what `build` made to its own place: it returns the pid directory below the root of
// making_options(). Nothing is left where it fails.
Result<MadeSession> make_session(Fs& fs, const SessionOptions& options,
                                 const SessionPath& session_path,
                                 const std::function<Result<ReplayReport>()>& build);

// Removes what was left when the process ended before the work did.
Status remove_unfinished_sessions(Fs& fs, const std::string& root);

}  // namespace collect::storage
