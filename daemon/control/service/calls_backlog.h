// What a WatchCalls still owes a client that reads slowly: some messages, and of what comes beyond
// them only how much it was.
#pragma once

#include <cstddef>
#include <deque>
#include <utility>

#include "collect/control/v1/calls.pb.h"

namespace collect::control {

inline constexpr size_t kMaxWaitingBatches = 8;

class CallsBacklog {
 public:
  bool empty() const { return batches_.empty(); }
  bool overflowed() const { return false; }

  // The oldest one goes, and is counted by the one behind it.
  void put(v1::CallBatch batch) {
    batches_.push_back(std::move(batch));
    if (batches_.size() <= kMaxWaitingBatches) return;
    const v1::CallBatch gone = std::move(batches_.front());
    batches_.pop_front();
    v1::CallBatch& next = batches_.front();
    next.set_events(next.events() + gone.events());
    next.set_skipped_calls(next.skipped_calls() + gone.skipped_calls() +
                           static_cast<uint64_t>(gone.calls_size()));
    next.set_skipped_events(next.skipped_events() + gone.skipped_events());
    next.set_lost_events(next.lost_events() + gone.lost_events());
    google::protobuf::Duration& interval = *next.mutable_interval();
    const int64_t nanos = int64_t{interval.nanos()} + gone.interval().nanos();
    interval.set_seconds(interval.seconds() + gone.interval().seconds() + nanos / 1'000'000'000);
    interval.set_nanos(static_cast<int32_t>(nanos % 1'000'000'000));
  }

  v1::CallBatch take() {
    v1::CallBatch batch = std::move(batches_.front());
    batches_.pop_front();
    return batch;
  }

 private:
  std::deque<v1::CallBatch> batches_;
};

}  // namespace collect::control
