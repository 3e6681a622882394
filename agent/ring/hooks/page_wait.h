// What a full ring does to a thread under FullPolicy::kWait.
#pragma once

#include "agent/ring/stream.h"

namespace collect::agent {

enum class Wait : uint8_t { kRetry, kGiveUp, kOver };

// With FullPolicy::kWait, holds the program until a page of the lane may be free, or until that
// can't be expected any more. kGiveUp is returned at once, before anything can change. After a wait
// the caller begins again, for it was a safe point: detail may have been switched, and the
// recording may be over, and then this stream must not be written any more. Else the wait is a
// stall (stalls.h), which the caller adds when it has done with the event.
Wait wait_for_page(Stream& stream, Lane lane, uint32_t reasons);
// The one system call that hooks make, and only when the drain has said for this very wait that no
// filter of the program's (seccomp) may refuse it, perhaps by ending the program. Until then, and
// where there is such a filter, a wait keeps its processor. `pauses`: those of this wait before.
// Among kManyThreads no one asks: awake, they would leave the drain no processor to answer with.
// They sleep if no filter has been seen (program_is_filtered); so many threads can't do without the
// call, with which they wait for each other's locks.
void pause_for_page(const Stream& stream, uint32_t pauses);
inline constexpr uint32_t kManyThreads = 64;

// While a thread waits. One within another changes nothing.
class SleepRequest {
 public:
  explicit SleepRequest(Stream& stream);
  ~SleepRequest();
  SleepRequest(const SleepRequest&) = delete;
  SleepRequest& operator=(const SleepRequest&) = delete;

 private:
  Stream* stream_;  // null: an outer one asks
};
void end_sleep_requests(Stream& stream);
// Answers those who ask, with FullPolicy::kWait. [drain]
void answer_sleep_requests();

}  // namespace collect::agent
