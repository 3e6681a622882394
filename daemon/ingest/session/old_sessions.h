// The sessions that are on disk when the collector starts: those that were being recorded wait for
// their agents, those whose sealing was interrupted are sealed, all are listed.
//
// find() belongs to the owner, before any other thread runs; from list() on the sealing thread has
// the object.
#pragma once

#include <functional>
#include <vector>

#include "daemon/ingest/link/snapshot.h"
#include "storage/manifest/manifest.h"
#include "storage/model/resume_key.h"
#include "storage/model/session_layout.h"

namespace collect::ingest {

struct IngestCore;

SystemTime unix_time(uint64_t unix_ns);

// How a session on disk is shown.
SessionSnapshot snapshot_of(const storage::Manifest& manifest,
                            const storage::SessionPath& session_path);

class OldSessions {
 public:
  // Called by find() for each session whose agent may come back.
  using Restore = std::function<void(const storage::Manifest&, const storage::ResumeKey&,
                                     const storage::SessionPath&)>;

  OldSessions(IngestCore& core, Restore restore);

  void find();
  // Lists what find() did not restore, in the background.
  void list();

 private:
  void list_next();
  void list_one(const storage::SessionPath& session_path);

  IngestCore& core_;
  const Restore restore_;
  std::vector<storage::SessionPath> session_paths_;
};

}  // namespace collect::ingest
