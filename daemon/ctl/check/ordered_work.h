// Work that can be split and whose results are wanted in order, on all cores, with bounded memory.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <vector>

#include "formats/core/threads.h"

namespace collect::ctl {

// For each piece, in order:
//
//   make(piece)          fills a piece; false: there is none left. One thread at a time.
//   work(worker, piece)  any thread; one worker, below `workers`, does one piece at a time.
//   take(piece)          on the calling thread; false: no more are wanted.
//
// Pieces are used again: make() finds in one what was left there. There are a few for each worker;
// where take() is slow, the others wait. The calling thread makes and works too.
template <class Piece, class Make, class Work, class Take>
class OrderedWork {
 public:
  OrderedWork(size_t workers, Make make, Work work, Take take)
      : workers_(workers),
        make_(std::move(make)),
        work_(std::move(work)),
        take_(std::move(take)),
        slots_(workers == 1 ? 1 : kSlotsPerWorker * workers) {}

  void run() {
    Workers others("work", workers_ - 1, [this](size_t worker) {
      const Ending ending(*this);
      work_on(worker);
    });
    {
      const Ending ending(*this);
      take_all();
    }
    others.join();
  }

 private:
  static constexpr size_t kSlotsPerWorker = 3;
  struct Slot {
    Piece piece;
    bool is_ready = false;
  };

  // A thread that leaves, also because something was thrown, ends the work of all: none waits for
  // it.
  struct Ending {
    explicit Ending(OrderedWork& of) : work(of) {}
    ~Ending() {
      if (std::uncaught_exceptions() == before) return;
      const std::lock_guard lock(work.mutex_);
      work.is_ended_ = work.has_thrown_ = true;
      work.changed_.notify_all();
    }
    OrderedWork& work;
    const int before = std::uncaught_exceptions();
  };

  bool can_make() const { return !is_making_ && !is_ended_ && made_ - taken_ < slots_.size(); }
  bool can_take() const { return taken_ != made_ && slots_[taken_ % slots_.size()].is_ready; }

  // Makes a piece and works on it; `lock` is held before and after.
  void make_one(std::unique_lock<std::mutex>& lock, size_t worker) {
    Slot& slot = slots_[made_ % slots_.size()];
    is_making_ = true;
    lock.unlock();
    const bool is_there = make_(slot.piece);
    lock.lock();
    is_making_ = false;
    if (is_there) {
      ++made_;
    } else {
      is_ended_ = true;
    }
    changed_.notify_all();
    if (!is_there) return;
    lock.unlock();
    work_(worker, slot.piece);
    lock.lock();
    slot.is_ready = true;
    changed_.notify_all();
  }

  void work_on(size_t worker) {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return is_ended_ || can_make(); });
      if (is_ended_) return;
      make_one(lock, worker);
    }
  }

  void take_all() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] {
        return has_thrown_ || can_take() || can_make() || (is_ended_ && taken_ == made_);
      });
      if (has_thrown_) return;
      if (can_take()) {
        Slot& slot = slots_[taken_ % slots_.size()];
        lock.unlock();
        const bool is_wanted = take_(slot.piece);
        lock.lock();
        slot.is_ready = false;
        ++taken_;
        if (!is_wanted) is_ended_ = true;
        changed_.notify_all();
        if (!is_wanted) return;
      } else if (can_make()) {
        make_one(lock, 0);
      } else {
        return;
      }
    }
  }

  const size_t workers_;
  Make make_;
  Work work_;
  Take take_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_, but for the pieces: each belongs to the thread that works on it.
  std::vector<Slot> slots_;  // piece i is in slot i % slots_.size()
  uint64_t made_ = 0;
  uint64_t taken_ = 0;
  bool is_making_ = false;
  bool is_ended_ = false;    // no further piece is made
  bool has_thrown_ = false;  // someone has: nothing more is taken
};

template <class Piece, class Make, class Work, class Take>
void work_in_order(size_t workers, Make make, Work work, Take take) {
  OrderedWork<Piece, Make, Work, Take>(workers, std::move(make), std::move(work), std::move(take))
      .run();
}

}  // namespace collect::ctl
