// Up to so many threads that do tasks in the order in which they came. They are started when there
// is something to do, and stay. What a task throws is reported, and the next one follows.
//
// Thread-safe but for join().
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "formats/core/result.h"

namespace collect {

class TaskThreads {
 public:
  using Task = std::function<void()>;

  TaskThreads(std::string name, unsigned threads) : name_(std::move(name)), most_(threads) {}
  ~TaskThreads() { join(); }
  TaskThreads(const TaskThreads&) = delete;
  TaskThreads& operator=(const TaskThreads&) = delete;

  // kExhausted: there is no thread, and the system starts none; kCancelled: after join(). Then the
  // task is dropped, and `refuse` is called with the error before post() returns.
  void post(Task task, const std::function<void(const Error&)>& refuse);
  // Does what was posted, and ends.
  void join();

 private:
  Status add(Task task);
  void serve();

  const std::string name_;
  const unsigned most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;             // guarded by mutex_
  unsigned idle_ = 0;                  // guarded by mutex_; threads that wait
  bool is_ended_ = false;              // guarded by mutex_
  std::vector<std::jthread> threads_;  // guarded by mutex_ until it is ended
};

}  // namespace collect
