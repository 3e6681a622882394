#include "formats/core/task_threads.h"

#include <utility>

#include "formats/core/threads.h"

namespace collect {

void TaskThreads::post(Task task, const std::function<void(const Error&)>& refuse) {
  Status added;
  const Status contained = contain([&] { added = add(std::move(task)); });
  if (!contained.ok()) added = contained.error();
  if (!added.ok()) refuse(added.error());
}

Status TaskThreads::add(Task task) {
  const std::lock_guard lock(mutex_);
  if (is_ended_) return Error{Code::kCancelled, "it is being shut down"};
  if (idle_ <= tasks_.size() && threads_.size() < most_) {
    threads_.reserve(most_);
    auto started = start_thread(name_, [this] { serve(); });
    if (started.ok()) {
      threads_.push_back(std::move(*started));
    } else if (threads_.empty()) {
      return started.error();
    }
  }
  tasks_.push_back(std::move(task));
  changed_.notify_one();
  return {};
}

void TaskThreads::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    changed_.wait(lock, [this] { return is_ended_ || !tasks_.empty(); });
    --idle_;
    if (tasks_.empty()) return;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    const Status done = contain(task);
    if (!done.ok()) report_fault(name_, done.error());
    task = nullptr;
    lock.lock();
  }
}

void TaskThreads::join() {
  {
    const std::lock_guard lock(mutex_);
    is_ended_ = true;
  }
  changed_.notify_all();
  threads_.clear();
}

}  // namespace collect
