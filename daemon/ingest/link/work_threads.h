// Threads that do work which may block on a disk. Work is a piece of one session: no two pieces of
// a session are there at once, and any thread may do the next one. So a piece that blocks stalls
// its own session only: when every thread is stuck, relieve() starts another, up to a limit.
//
// Time is divided among the principals that have work (principal/fair_queue.h): what one of them
// brings, however much it is, costs another one the pieces that run.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "daemon/ingest/link/limits.h"
#include "daemon/principal/fair_queue.h"

namespace collect::ingest {

class WorkThreads {
 public:
  using Work = principal::FairQueue::Work;
  using Time = std::chrono::steady_clock::time_point;

  // `threads` at once, and up to `most` where work blocks. None at all: the owner calls work_one().
  WorkThreads(std::string name, unsigned threads, unsigned most);
  ~WorkThreads();  // as stop()

  void add(const principal::Principal& principal, Work work);
  // After a pause. False: so many wait for theirs already, and `work` is dropped.
  bool add_later(const principal::Principal& principal, Work work, milliseconds pause,
                 size_t most_waiting = SIZE_MAX);
  // Called every now and then: starts a thread when work waits and each thread has been at one
  // piece for longer than kStuckAfter. One that the system does not start is asked for again by
  // the next call.
  void relieve(Time now = std::chrono::steady_clock::now());
  // One piece of work on the caller's thread; false: there was none.
  bool work_one();
  // Nothing runs and nothing waits, but for its pause.
  bool is_idle() const;
  // Finishes what is running, drops the rest, joins. Call when nothing more is wanted.
  void stop();

 private:
  struct Later {
    principal::Principal principal;
    Work work;
  };
  struct Worker {
    Time busy_since{};  // guarded by mutex_
    bool is_busy = false;
    std::jthread thread;
  };

  void start_worker();  // with mutex_ held
  void serve(Worker& worker);
  void wait_for_work(std::unique_lock<std::mutex>& lock);
  void take_due(Time now);  // with mutex_ held
  void do_next(std::unique_lock<std::mutex>& lock, Worker& worker);

  // constant after construction
  const std::string name_;
  const unsigned threads_;
  const unsigned most_;

  // guarded by mutex_
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  principal::FairQueue work_;
  std::multimap<Time, Later> later_;  // by due
  std::list<Worker> workers_;
  bool stopping_ = false;
  bool lacks_thread_ = false;  // the last one was not started
};

}  // namespace collect::ingest
