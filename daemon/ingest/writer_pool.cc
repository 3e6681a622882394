#include "daemon/ingest/writer_pool.h"

#include <pthread.h>

#include "daemon/ingest/limits.h"
#include "daemon/ingest/page_unpacker.h"
#include "daemon/ingest/session_pipe.h"

namespace collect::ingest {

WriterPool::Lane::Lane() = default;
WriterPool::Lane::~Lane() = default;

WriterPool::WriterPool(unsigned writer_threads) {
  for (unsigned index = 0; index < writer_threads; ++index) {
    auto lane = std::make_unique<Lane>();
    lane->unpacker = std::make_unique<PageUnpacker>();
    Lane& started = *lane;
    lane->thread = std::thread([&started] { serve(started); });
    (void)pthread_setname_np(lane->thread.native_handle(), "writer");
    writers_.push_back(std::move(lane));
  }
  sealer_.thread = std::thread([this] { serve(sealer_); });
  (void)pthread_setname_np(sealer_.thread.native_handle(), "sealer");
}

WriterPool::~WriterPool() {
  stop();
}

size_t WriterPool::assign() {
  std::lock_guard lock(assign_mutex_);
  return next_++ % writers_.size();
}

void WriterPool::schedule(size_t writer, std::shared_ptr<SessionPipe> pipe) {
  const principal::Principal& principal = pipe->principal();
  add(*writers_[writer], principal, [pipe = std::move(pipe)] { pipe->run(); });
}

void WriterPool::schedule_later(size_t writer, std::shared_ptr<SessionPipe> pipe,
                                milliseconds pause) {
  Lane& lane = *writers_[writer];
  std::lock_guard lock(lane.mutex);
  const principal::Principal& principal = pipe->principal();
  lane.later.emplace(std::chrono::steady_clock::now() + pause,
                     Later{principal, [pipe = std::move(pipe)] { pipe->run(); }});
}

void WriterPool::schedule_seal(const principal::Principal& principal, std::function<void()> work) {
  add(sealer_, principal, std::move(work));
}

void WriterPool::add(Lane& lane, const principal::Principal& principal,
                     std::function<void()> work) {
  {
    std::lock_guard lock(lane.mutex);
    if (lane.stopping) return;
    lane.work.push(principal, std::move(work));
  }
  lane.wake.notify_one();
}

bool WriterPool::schedule_seal_again(const principal::Principal& principal,
                                     std::function<void()> work) {
  {
    std::lock_guard lock(sealer_.mutex);
    if (sealer_.later.size() >= kMaxHeldUpSeals) return false;
    sealer_.later.emplace(std::chrono::steady_clock::now() + kSealAgain,
                          Later{principal, std::move(work)});
  }
  sealer_.wake.notify_one();
  return true;
}

void WriterPool::wait_for_work(Lane& lane, std::unique_lock<std::mutex>& lock) {
  while (!lane.stopping) {
    const auto now = std::chrono::steady_clock::now();
    while (!lane.later.empty() && now >= lane.later.begin()->first) {
      Later& due = lane.later.begin()->second;
      lane.work.push(due.principal, std::move(due.work));
      lane.later.erase(lane.later.begin());
    }
    if (!lane.work.empty()) return;
    if (lane.later.empty()) {
      lane.wake.wait(lock);
    } else {
      lane.wake.wait_until(lock, lane.later.begin()->first);
    }
  }
}

void WriterPool::serve(Lane& lane) {
  std::unique_lock lock(lane.mutex);
  while (true) {
    wait_for_work(lane, lock);
    if (lane.stopping) return;
    auto [principal, work] = lane.work.pop();
    lock.unlock();
    const auto start = std::chrono::steady_clock::now();
    work();
    work = nullptr;  // may end a session: not under the lock
    const auto spent = std::chrono::steady_clock::now() - start;
    lock.lock();
    lane.work.charge(principal, spent);
  }
}

void WriterPool::stop() {
  std::vector<Lane*> lanes{&sealer_};
  for (const auto& writer : writers_) lanes.push_back(writer.get());
  for (Lane* lane : lanes) {
    {
      std::lock_guard lock(lane->mutex);
      lane->stopping = true;
    }
    lane->wake.notify_all();
  }
  for (Lane* lane : lanes) {
    if (lane->thread.joinable()) lane->thread.join();
    lane->work.clear();
    lane->later.clear();
  }
}

}  // namespace collect::ingest
