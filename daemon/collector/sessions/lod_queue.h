// Makes index.lod (formats/calls/LOD.md) of sealed sessions, one after the other, by runs of
// collect-page: a large capture is a matter of a minute on a core, which neither recording nor
// sealing waits for. What is not made when the daemon ends is made by the first command that shows
// the session.
//
// Thread-safe. Its thread waits for the program.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "storage/fs/fs.h"
#include "storage/session/space_guard.h"

namespace collect::daemon {

class LodQueue {
 public:
  static constexpr size_t kMaxQueued = 1000;  // sessions; further ones are left to who looks first

  // `on_failed` gets a session and a sentence for the log, on the queue's thread; it outlives this.
  using OnFailed = std::function<void(const std::string& name, const std::string& said)>;

  // `program` is collect-page. Nothing is made where less would stay free than `limits` keep.
  LodQueue(std::string program, storage::Fs& fs, const storage::SpaceGuard::Limits& limits,
           OnFailed on_failed);
  ~LodQueue() { stop(); }

  const Status& started() const { return started_; }  // else nothing is made

  void add(const std::string& name, const std::string& directory);
  // Ends all work on this session, and returns when nothing touches its files any more.
  void forget(const std::string& name);
  void stop();

 private:
  struct Job {
    std::string name;
    std::string directory;
  };
  void serve();
  void make(const Job& job);

  const std::string program_;
  storage::Fs& fs_;
  const storage::SpaceGuard::Limits limits_;
  const OnFailed on_failed_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> queue_;            // guarded by mutex_
  std::string current_;              // guarded by mutex_; session that is worked on
  bool stopping_ = false;            // guarded by mutex_
  std::atomic<bool> cancel_{false};  // what is being made is not wanted any more
  Status started_;
  std::jthread thread_;
};

}  // namespace collect::daemon
