#include "daemon/ingest/link/work_threads.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "formats/core/threads.h"

namespace collect::ingest {

WorkThreads::WorkThreads(std::string name, unsigned threads, unsigned most)
    : name_(std::move(name)), threads_(threads), most_(std::max(threads, most)) {
  std::lock_guard lock(mutex_);
  for (unsigned index = 0; index < threads; ++index) start_worker();
}

WorkThreads::~WorkThreads() {
  stop();
}

void WorkThreads::start_worker() {
  Worker& worker = workers_.emplace_back();
  auto started = start_thread(name_, [this, &worker] { serve(worker); });
  if (started.ok()) {
    worker.thread = std::move(*started);
    if (std::exchange(lacks_thread_, false)) spdlog::info("{}: it has its thread now", name_);
    return;
  }
  workers_.pop_back();
  if (std::exchange(lacks_thread_, true)) return;
  spdlog::warn("{}: {}; {} threads continue, and it is tried again", name_, started.error().message,
               workers_.size());
}

void WorkThreads::add(const principal::Principal& principal, Work work) {
  {
    std::lock_guard lock(mutex_);
    if (stopping_) return;
    work_.push(principal, std::move(work));
  }
  wake_.notify_one();
}

bool WorkThreads::add_later(const principal::Principal& principal, Work work, milliseconds pause,
                            size_t most_waiting) {
  {
    std::lock_guard lock(mutex_);
    if (later_.size() >= most_waiting) return false;
    later_.emplace(std::chrono::steady_clock::now() + pause, Later{principal, std::move(work)});
  }
  wake_.notify_one();
  return true;
}

void WorkThreads::relieve(Time now) {
  std::lock_guard lock(mutex_);
  if (stopping_) return;
  while (workers_.size() < threads_) {
    start_worker();
    if (lacks_thread_) return;
  }
  if (work_.empty() || workers_.size() >= most_) return;
  const bool all_stuck = std::ranges::all_of(workers_, [now](const Worker& worker) {
    return worker.is_busy && now - worker.busy_since > kStuckAfter;
  });
  if (all_stuck) start_worker();
}

bool WorkThreads::is_idle() const {
  std::lock_guard lock(mutex_);
  return work_.empty() && std::ranges::none_of(workers_, &Worker::is_busy);
}

void WorkThreads::take_due(Time now) {
  while (!later_.empty() && now >= later_.begin()->first) {
    Later& due = later_.begin()->second;
    work_.push(due.principal, std::move(due.work));
    later_.erase(later_.begin());
  }
}

void WorkThreads::wait_for_work(std::unique_lock<std::mutex>& lock) {
  while (!stopping_) {
    take_due(std::chrono::steady_clock::now());
    if (!work_.empty()) return;
    if (later_.empty()) {
      wake_.wait(lock);
    } else {
      const Time due = later_.begin()->first;  // another thread may take it meanwhile
      wake_.wait_until(lock, due);
    }
  }
}

void WorkThreads::serve(Worker& worker) {
  std::unique_lock lock(mutex_);
  while (true) {
    wait_for_work(lock);
    if (stopping_) return;
    do_next(lock, worker);
  }
}

bool WorkThreads::work_one() {
  std::unique_lock lock(mutex_);
  take_due(std::chrono::steady_clock::now());
  if (stopping_ || work_.empty()) return false;
  Worker caller;
  do_next(lock, caller);
  return true;
}

void WorkThreads::do_next(std::unique_lock<std::mutex>& lock, Worker& worker) {
  auto [principal, work] = work_.pop();
  // The rest, and what becomes due, is for another thread.
  if (!work_.empty() || !later_.empty()) wake_.notify_one();
  const Time start = std::chrono::steady_clock::now();
  worker.busy_since = start;
  worker.is_busy = true;
  lock.unlock();
  const Status done = contain(work);
  if (!done.ok()) report_fault(name_, done.error());
  work = nullptr;  // may end a session: not under the lock
  const auto spent = std::chrono::steady_clock::now() - start;
  lock.lock();
  worker.is_busy = false;
  work_.charge(principal, spent);
}

void WorkThreads::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (Worker& worker : workers_) {  // none is added any more
    if (worker.thread.joinable()) worker.thread.join();
  }
  work_.clear();
  later_.clear();
}

}  // namespace collect::ingest
