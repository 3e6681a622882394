#include "daemon/attach/list_pace.h"

#include <algorithm>
#include <utility>

namespace collect::attach {

using std::chrono::steady_clock;

void ListPace::take(const std::vector<SourceDevice>& list, steady_clock::time_point now) {
  if (waiting_) {
    newest_ = list;
    return;
  }
  const int64_t more = (now - refilled_) / kListPause;
  refilled_ += more * kListPause;
  free_ = std::min(kListsAtOnce, free_ + more);
  if (free_ > 0) {
    --free_;
    pass_on_(list);
    return;
  }
  waiting_ = true;
  newest_ = list;
  timer_.expires_after(kListPause);
  timer_.async_wait([weak = weak_from_this()](const std::error_code& error) {
    const auto self = weak.lock();
    if (error || !self) return;
    self->waiting_ = false;
    self->refilled_ = self->timer_.expiry();
    self->pass_on_(std::exchange(self->newest_, {}));
  });
}

}  // namespace collect::attach
