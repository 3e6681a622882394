// The last step of a session's files, on the sealing thread; the writer thread only drops items
// from begin_seal() on.
#include "daemon/ingest/session_pipe.h"

namespace collect::ingest {

void SessionPipe::finish_seal(SessionSeal seal) {
  if (writer_) {
    Status sealed = writer_->seal(seal.state, seal.reason);
    if (!sealed.ok()) {
      seal.state = storage::SessionState::kFailed;
      const std::string why = to_string(sealed.error());
      if (seal.reason.find(why) == std::string::npos) seal.reason += "; sealing failed: " + why;
    }
    count_totals();
  } else if (!recover_directory_.empty()) {
    recover(seal);
  }
  news_.sealed = SessionReport::Sealed{seal.state, seal.reason};
  publish();
  writer_.reset();
}

void SessionPipe::recover(SessionSeal& seal) {
  const auto recovered = storage::recover_session(*world_.fs, *world_.options, recover_directory_);
  if (!recovered.ok()) {
    seal = {storage::SessionState::kFailed, to_string(recovered.error())};
    return;
  }
  seal = {recovered->state, recovered->reason};
  counted_ = recovered->totals;
}

}  // namespace collect::ingest
