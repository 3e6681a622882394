// The modules of one process, by which names of functions become ids. An agent that asks for a
// function filter names them before it records; those of a recording come with its data.
//
// add() and all() may be called by any thread; the rest belongs to the io thread of the Peer.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "daemon/ingest/link/verdict.h"
#include "daemon/principal/budget.h"
#include "proto/wire/wire.pb.h"
#include "storage/model/session_types.h"

namespace collect::ingest {

// Empty: one frame may say so.
Verdict check_untrusted_modules(const wire::Modules& modules);
// What they take: they are kept twice, for names of functions and for the manifest.
uint64_t memory_of(const std::vector<storage::ModuleInfo>& modules);

class LoadedModules {
 public:
  // More than storage::kMaxModules are skipped: storage reports that.
  void add(const std::vector<storage::ModuleInfo>& modules);
  // Before a recording, which would be charged for them. Not empty: the principal has too much.
  Verdict add_early(const std::vector<storage::ModuleInfo>& modules,
                    const std::shared_ptr<principal::Account>& account);
  // They come again with its data.
  void begin_recording();
  // No recording is going to come on this connection.
  void end_connection() { early_memory_.reset(); }
  std::vector<storage::ModuleInfo> all() const;  // by id

 private:
  mutable std::mutex mutex_;
  std::map<uint32_t, storage::ModuleInfo> modules_;  // guarded by mutex_
  std::optional<principal::Lease> early_memory_;
};

}  // namespace collect::ingest
