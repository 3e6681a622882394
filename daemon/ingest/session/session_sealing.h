// The last step of a session: links are checked, footers written, files synced, which may take
// seconds. Where the disk is full or this machine is out of something, it is done again later.
//
// Used by one sealing thread at a time; the session is no one else's any more.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "daemon/ingest/session/stored_session.h"

namespace collect::ingest {

class SessionSealing {
 public:
  SessionSealing(StoredSession& session, SessionSeal seal)
      : session_(session), seal_(std::move(seal)) {}

  // `try_later` schedules another attempt; false: there will be none. True: the session has a
  // report.
  bool attempt(const std::function<bool()>& try_later);

 private:
  enum class Outcome : uint8_t { kWhole, kNotWhole, kTryAgain };

  Outcome seal_files(SessionReport::Sealed& sealed);
  Outcome recover(SessionReport::Sealed& sealed);
  void add_to_completed(storage::SessionState state);
  void have_named(std::vector<uint64_t> functions, SessionReport::Sealed& sealed);

  StoredSession& session_;
  const SessionSeal seal_;
  bool reported_ = false;
};

}  // namespace collect::ingest
