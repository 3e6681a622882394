#include "daemon/ctl/export/compressed_runs.h"

#include "formats/perfetto/writer.h"

namespace collect::ctl {

CompressedRuns::CompressedRuns(ByteSink& out, size_t workers)
    : out_(out), slots_(kSlotsPerWorker * workers) {
  for (size_t i = 0; i < workers; ++i) workers_.emplace_back([this] { work(); });
}

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
  changed_.wait(lock, [&slot] { return slot.is_packed; });
  lock.unlock();
  if (status_.ok()) status_ = out_.write(slot.packed);
  lock.lock();
  slot.is_packed = false;
  ++taken_;
}

Status CompressedRuns::write(Bytes run) {
  if (slots_.empty()) {
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

}  // namespace collect::ctl
