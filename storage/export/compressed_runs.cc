#include "storage/export/compressed_runs.h"

#include "formats/perfetto/writer.h"

namespace collect::exports {

CompressedRuns::CompressedRuns(ByteSink& out, size_t workers)
    : out_(out), slots_(kSlotsPerWorker * workers), workers_("pack", workers, [this](size_t) {
        const Status done = contain([this] { work(); });
        if (done.ok()) return;
        const std::lock_guard lock(mutex_);
        has_thrown_ = true;
        changed_.notify_all();
      }) {}

CompressedRuns::~CompressedRuns() {
  {
    const std::lock_guard lock(mutex_);
    is_ended_ = true;
  }
  changed_.notify_all();
}

void CompressedRuns::work() {
  ZlibPieces pieces;
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return is_ended_ || begun_ != put_; });
    if (is_ended_) return;
    Slot& slot = slots_[begun_++ % slots_.size()];
    lock.unlock();
    slot.packed.clear();
    perfetto::append_compressed_run(pieces, slot.packed, slot.run);
    lock.lock();
    slot.is_packed = true;
    changed_.notify_all();
  }
}

// Writes the oldest run; waits for it.
void CompressedRuns::take_one(std::unique_lock<std::mutex>& lock) {
  Slot& slot = slots_[taken_ % slots_.size()];
  changed_.wait(lock, [this, &slot] { return slot.is_packed || has_thrown_; });
  if (!slot.is_packed && status_.ok()) status_ = Error{Code::kExhausted, "out of memory"};
  lock.unlock();
  if (status_.ok()) status_ = out_.write(slot.packed);
  lock.lock();
  slot.is_packed = false;
  ++taken_;
}

Status CompressedRuns::write(Bytes run) {
  if (workers_.count() == 0) {
    std::vector<uint8_t> packed;
    perfetto::append_compressed_run(own_pieces_, packed, run);
    if (status_.ok()) status_ = out_.write(packed);
    return status_;
  }
  std::unique_lock lock(mutex_);
  if (put_ - taken_ == slots_.size()) take_one(lock);
  Slot& slot = slots_[put_ % slots_.size()];
  slot.run.assign(run.begin(), run.end());
  ++put_;
  changed_.notify_all();
  return status_;
}

Status CompressedRuns::finish() {
  std::unique_lock lock(mutex_);
  while (taken_ != put_) take_one(lock);
  return status_;
}

}  // namespace collect::exports
