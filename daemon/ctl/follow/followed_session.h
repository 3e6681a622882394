// The files of a session while they grow. Nothing of it is kept open or mapped that has not changed
// since the last look.
//
// One thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "formats/atf/reader.h"
#include "formats/calls/call.h"
#include "formats/calls/running_time.h"
#include "storage/fs/rooted_directory.h"
#include "storage/read/file_bytes.h"
#include "storage/read/session_manifest.h"

namespace collect::ctl::follow {

struct FollowedThread {
  uint32_t n = 0;  // of thread_N
  uint32_t thread_id = 0;
  std::string name;
  read::FileBytes file;
  std::optional<atf::IndexReader> index;  // absent: nothing of it can be read yet
  uint64_t size_bytes = 0;
  uint64_t settled = 0;  // events of the look before: those that may be read
  uint64_t lost = 0;     // as the manifest says
  std::vector<calls::Gap> gaps;
  // Times off the processor that no one has taken yet; beyond kMaxWaitsOfThread they are joined.
  std::vector<calls::Stall> waits;

  void add_wait(const calls::Stall& wait);
};

class FollowedSession {
 public:
  static Result<FollowedSession> open(const std::string& directory);

  // Looks at what has changed. An error is one of the directory, which is gone then.
  Status look();
  // By n.
  std::map<uint32_t, FollowedThread>& threads() { return threads_; }
  const std::map<uint32_t, FollowedThread>& threads() const { return threads_; }
  bool is_sealed() const { return is_sealed_; }
  const std::string& manifest() const { return text_; }
  const read::SessionManifest& said() const { return said_; }
  // Times off the processor are recorded.
  bool has_switches() const { return said_.identity.switches; }
  uint64_t manifests() const { return manifests_; }  // how many were read

 private:
  explicit FollowedSession(storage::RootedDirectory root) : root_(std::move(root)) {}
  void look_at(FollowedThread& thread);
  void skip_switches();
  void look_at_switches();
  Status look_at_manifest();
  void apply_manifest(FollowedThread& thread) const;

  storage::RootedDirectory root_;
  std::map<uint32_t, FollowedThread> threads_;
  std::string text_;
  read::SessionManifest said_;
  uint64_t manifests_ = 0;
  uint64_t switch_bytes_ = 0;  // of switches.bin, that were read
  bool is_sealed_ = false;
  uint64_t manifest_inode_ = 0;
  int64_t manifest_time_ns_ = 0;
};

}  // namespace collect::ctl::follow
