// The last step of a session's files, on the sealing thread; the writer thread only drops items
// from begin_seal() on.
#include <utility>

#include "daemon/ingest/session_pipe.h"
#include "daemon/ingest/writer_pool.h"

namespace collect::ingest {

// Others may have taken the session's reserve too: then it is sealed when there is room again.
void SessionPipe::finish_seal(const SessionSeal& seal) {
  SessionReport::Sealed sealed{seal.state, seal.reason};
  bool whole = true;
  if (writer_) {
    whole = seal_files(sealed);
  } else if (!recover_directory_.empty()) {
    whole = recover(sealed);
  }
  if (sealed.held_up) {
    sealed.held_up = world_.writers->schedule_seal_again(
        [self = shared_from_this(), seal] { self->finish_seal(seal); });
  }
  if (!sealed.held_up) writer_.reset();
  // The first outcome is told, and then that it is whole after all. Where it was removed meanwhile,
  // what was told stands.
  if (std::exchange(told_sealed_, true) && !whole) return;
  news_.sealed = std::move(sealed);
  publish();
}

// Whether all of it is on disk now.
bool SessionPipe::seal_files(SessionReport::Sealed& sealed) {
  const Status status = writer_->seal(sealed.state, sealed.reason);
  count_totals();
  if (status.ok()) return true;
  sealed.state = storage::SessionState::kFailed;
  const std::string why = to_string(status.error());
  if (sealed.reason.find(why) == std::string::npos) sealed.reason += "; sealing failed: " + why;
  sealed.held_up = !writer_->sealed() && status.code() == Code::kNoSpace;
  return writer_->sealed();
}

bool SessionPipe::recover(SessionReport::Sealed& sealed) {
  const auto recovered = storage::recover_session(*world_.fs, *world_.options, recover_directory_);
  if (!recovered.ok()) {
    sealed = {storage::SessionState::kFailed, to_string(recovered.error()),
              recovered.code() == Code::kNoSpace};
    return false;
  }
  sealed = {recovered->state, recovered->reason};
  counted_ = recovered->totals;
  return true;
}

}  // namespace collect::ingest
