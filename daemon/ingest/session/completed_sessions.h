// Which recordings are sealed and complete, and in which session: an agent repeats a recording when
// the link broke, and perhaps this collector ended, before it was informed of the seal.
//
// Filled when a session is sealed, and by the listing of old sessions at the start; so no manifest
// is read when a recording begins. Thread-safe, bounded: the oldest is dropped first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "daemon/ingest/link/snapshot.h"
#include "storage/model/session_layout.h"

namespace collect::ingest {

inline constexpr size_t kMaxCompletedSessions = 16'384;

class CompletedSessions {
 public:
  struct Answer {
    std::optional<storage::SessionPath> session_path;
    bool is_known = true;  // false: an old session of this pid is still to be looked at
  };

  void add(const ProcessId& process, uint32_t recording, const storage::SessionPath& session_path);
  Answer find(const ProcessId& process, uint32_t recording, uint32_t pid) const;

  // An old session is to be looked at, and was.
  void expect(uint32_t pid);
  void looked_at(uint32_t pid);

 private:
  using Key = std::pair<ProcessId, uint32_t>;

  mutable std::mutex mutex_;
  std::map<Key, storage::SessionPath> session_paths_;
  std::deque<Key> order_;
  std::map<uint32_t, uint32_t> expected_;  // by pid
};

}  // namespace collect::ingest
