// What is done to sealed sessions, one after the other, on a thread of low priority: index.lod
// (formats/calls/LOD.md), by runs of collect-page, and packing (storage/packed). A large capture is
// a matter of a minute on a core, which neither recording nor sealing waits for. What is not done
// when the daemon ends is done after its next start, or, of index.lod, by the first command that
// shows the session.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "daemon/collector/sessions/session_use.h"
#include "storage/fs/fs.h"
#include "storage/model/session_layout.h"
#include "storage/packed/pack_session.h"
#include "storage/session/space_guard.h"

namespace collect::daemon {

class SealedWork {
 public:
  static constexpr size_t kMaxQueued = 2000;  // jobs; further ones are left to the next start
  // After which one is begun again whose session is in use.
  static constexpr std::chrono::milliseconds kUseLook{500};

  // On the work's thread: a session and a sentence for the log. It outlives this.
  using OnFailed = std::function<void(const std::string& name, const std::string& said)>;
  // On the work's thread, or on the caller's when it is refused. kCancelled: the session is
  // removed. kUnavailable: the daemon ends.
  using OnPacked = std::function<void(const Result<storage::PackReport>&)>;

  // `program` is collect-page. Nothing is made where less would stay free than `limits` keep.
  SealedWork(std::string program, storage::Fs& fs, const storage::SpaceGuard::Limits& limits,
             SessionUse in_use, OnFailed on_failed);
  ~SealedWork() { stop(); }

  const Status& started() const { return started_; }  // else nothing is done

  void add_lods(const storage::SessionPath& session_path);
  // Behind what is to be done with the session already.
  void add_packing(const storage::SessionPath& session_path, storage::PackWay way, OnPacked done);
  // Ends what is being packed or unpacked of this session, which is in use for it.
  void end_packing(const std::string& name);
  // Ends all work on this session, and returns when nothing touches its files any more.
  void forget(const std::string& name);
  void stop();

 private:
  struct Job {
    storage::SessionPath session_path;
    OnPacked done{};  // null: it is for index.lod
    storage::PackWay way{};
    std::chrono::steady_clock::time_point not_before{};
  };
  void serve();
  void end_current(std::unique_lock<std::mutex>& lock, const std::string& name);
  Status add(Job job);
  // False: its session is in use, and the job is for later.
  bool run(const Job& job);
  void make_lods(const Job& job);
  Result<storage::PackReport> pack(const Job& job);
  Error why_cancelled();
  Status admit(const storage::SessionPath& session_path, uint64_t share) const;

  const std::string program_;
  storage::Fs& fs_;
  const storage::SpaceGuard::Limits limits_;
  SessionUse in_use_;
  const OnFailed on_failed_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> queue_;            // guarded by mutex_
  std::string current_;              // guarded by mutex_; session that is worked on
  bool is_packing_ = false;          // guarded by mutex_; that is what is done with it
  bool stopping_ = false;            // guarded by mutex_
  std::atomic<bool> cancel_{false};  // what is being made is not wanted any more
  Status started_;
  std::jthread thread_;
};

}  // namespace collect::daemon
