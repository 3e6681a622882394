// Runs of Perfetto packets on their way to a file, compressed by several threads, written in order.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "formats/core/byte_sink.h"
#include "formats/core/encoding/deflate.h"
#include "formats/core/threads.h"

namespace collect::exports {

// One thread writes and finishes; `workers` threads of its own compress (0: the one that writes
// does). Memory: kSlotsPerWorker runs of each.
class CompressedRuns final : public ByteSink {
 public:
  CompressedRuns(ByteSink& out, size_t workers);
  ~CompressedRuns() override;

  // A run of whole packets.
  Status write(Bytes run) override;
  // Everything is written to `out`, or the first error is returned.
  Status finish();

 private:
  static constexpr size_t kSlotsPerWorker = 3;
  struct Slot {
    bool is_packed = false;  // and not written yet
    std::vector<uint8_t> run;
    std::vector<uint8_t> packed;
  };

  void work();
  void take_one(std::unique_lock<std::mutex>& lock);

  ByteSink& out_;
  Status status_;  // of the thread that writes
  ZlibPieces own_pieces_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_, but for the bytes of a slot: from begun_ on until it is packed they belong
  // to a worker, else to the thread that writes. Run i is in slot i % slots_.size().
  std::vector<Slot> slots_;
  uint64_t put_ = 0;    // runs that came
  uint64_t begun_ = 0;  // of these, that a worker took
  uint64_t taken_ = 0;  // that were written to out_
  bool is_ended_ = false;
  bool has_thrown_ = false;  // guarded by mutex_; a worker has: nothing more is packed
  Workers workers_;          // last: it uses all that is above
};

}  // namespace collect::exports
