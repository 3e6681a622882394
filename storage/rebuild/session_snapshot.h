// What a session that is still written holds at some moment, as a sealed session beside it:
// "session_20260131_235959/pid_7" becomes "session_20260131_235959_snap1/pid_7". The first
// continues as if nothing had been. STORAGE.md "Snapshots".
//
// Its files are copied as far as they were written at that moment (Session::cut), and sealed
// as a recovery would.
#pragma once

#include <string>

#include "formats/core/result.h"
#include "storage/rebuild/made_session.h"
#include "storage/session/session.h"

namespace collect::storage {

// What is known of the moment.
struct SnapshotMoment {
  // Everything recorded before it is in the cut: the program's agent shipped it, and confirmed
  // that. Else the snapshot is a recovered session, and `reason` says why.
  bool is_whole = false;
  uint64_t at_ns = 0;    // device clock; with is_whole
  std::string reason;    // of the manifest
  uint64_t unix_ns = 0;  // the collector's clock: when the copy's recording ends
};

//   kUnsupported    it holds a stream of another format, or it was sealed meanwhile
//   kNoSpace        less would be free than is to stay free; nothing was written
//   kLimit          max_session_bytes, or kMaxSnapshots of one session
Result<MadeSession> snapshot_session(Fs& fs, const SessionOptions& options, const SessionPath& from,
                                     const SessionCut& cut, const SnapshotMoment& moment,
                                     const MakingProgress& progress);

}  // namespace collect::storage
