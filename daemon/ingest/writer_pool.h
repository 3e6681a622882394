// The threads that write files. Each session belongs to one of the writer threads, round robin;
// sealing has a thread of its own, so that a session that ends does not hold up those that record.
// Each thread divides its time among the principals that have work for it (principal/fair_queue.h):
// what one of them brings, however much it is, costs another the one piece of work that runs.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "daemon/ingest/limits.h"
#include "daemon/principal/fair_queue.h"

namespace collect::ingest {

class PageUnpacker;
class SessionPipe;

class WriterPool {
 public:
  explicit WriterPool(unsigned writer_threads);
  ~WriterPool();  // as stop()

  size_t assign();  // the writer for a new session
  void schedule(size_t writer, std::shared_ptr<SessionPipe> pipe);
  // On that writer's thread.
  PageUnpacker& unpacker(size_t writer) { return *writers_[writer]->unpacker; }
  void schedule_later(size_t writer, std::shared_ptr<SessionPipe> pipe, milliseconds pause);
  void schedule_seal(const principal::Principal& principal, std::function<void()> work);
  // What a full disk held up, in kSealAgain. False: too much waits, and `work` is forgotten.
  bool schedule_seal_again(const principal::Principal& principal, std::function<void()> work);
  // Finishes what is running, forgets the rest, joins. Call when nothing more is wanted.
  void stop();

 private:
  struct Later {
    principal::Principal principal;
    std::function<void()> work;
  };
  struct Lane {
    std::mutex mutex;
    std::condition_variable wake;
    principal::FairQueue work;                                          // guarded by mutex
    std::multimap<std::chrono::steady_clock::time_point, Later> later;  // guarded by mutex; by due
    bool stopping = false;                                              // guarded by mutex
    std::unique_ptr<PageUnpacker> unpacker;  // the thread's; null for the sealer
    std::thread thread;

    Lane();
    ~Lane();
  };

  static void serve(Lane& lane);
  static void wait_for_work(Lane& lane, std::unique_lock<std::mutex>& lock);
  static void add(Lane& lane, const principal::Principal& principal, std::function<void()> work);

  std::vector<std::unique_ptr<Lane>> writers_;
  Lane sealer_;
  std::mutex assign_mutex_;
  size_t next_ = 0;  // guarded by assign_mutex_
};

}  // namespace collect::ingest
