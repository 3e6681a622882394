// The threads that write files. Each session belongs to one of the writer threads, round robin;
// sealing has a thread of its own, so that a session that ends does not hold up those that record.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace collect::ingest {

class PageUnpacker;
class SessionPipe;

class WriterPool {
 public:
  explicit WriterPool(unsigned writer_threads);
  ~WriterPool();  // as stop()

  size_t assign();  // the writer for a new session
  // On that writer's thread.
  PageUnpacker& unpacker(size_t writer) { return *writers_[writer]->unpacker; }
  void schedule(size_t writer, std::shared_ptr<SessionPipe> pipe);
  void schedule_seal(std::function<void()> work);
  // Finishes what is running, forgets the rest, joins. Call when nothing more is wanted.
  void stop();

 private:
  struct Lane {
    std::mutex mutex;
    std::condition_variable wake;
    std::deque<std::function<void()>> work;  // guarded by mutex
    bool stopping = false;                   // guarded by mutex
    std::unique_ptr<PageUnpacker> unpacker;  // the thread's; null for the sealer
    std::thread thread;

    Lane();
    ~Lane();
  };

  static void serve(Lane& lane);
  static void add(Lane& lane, std::function<void()> work);

  std::vector<std::unique_ptr<Lane>> writers_;
  Lane sealer_;
  std::mutex assign_mutex_;
  size_t next_ = 0;  // guarded by assign_mutex_
};

}  // namespace collect::ingest
