#include "daemon/ingest/session/session_sealing.h"

#include <utility>

#include "storage/model/seal_reason.h"

namespace collect::ingest {

// Others may have taken the session's reserve too: then it is sealed when there is room again.
bool SessionSealing::attempt(const std::function<bool()>& try_later) {
  SessionReport::Sealed sealed{seal_.state, seal_.reason};
  Outcome outcome = Outcome::kWhole;
  if (session_.is_open()) {
    outcome = seal_files(sealed);
  } else if (!session_.recover_directory().empty()) {
    outcome = recover(sealed);
  }
  const bool again = sealed.deferred || outcome == Outcome::kTryAgain;
  sealed.deferred = again && try_later();
  // This machine was out of something: nothing became of the session yet, so nothing is reported.
  if (sealed.deferred && outcome == Outcome::kTryAgain) return false;
  const bool whole = outcome == Outcome::kWhole;
  if (session_.is_open()) {
    sealed.health = session_.writer().health();
    if (whole) add_to_completed(sealed.state);
    if (whole && sealed.state == storage::SessionState::kComplete) {
      sealed.state = sealed.health.state;
    }
  }
  if (!sealed.deferred) session_.close();
  // The first outcome is reported, and then that it is whole after all. Where the session was
  // removed meanwhile, the first report is.
  if (std::exchange(reported_, true) && !whole) return false;
  session_.report_sealed(std::move(sealed));
  return true;
}

// So that the agent is informed again if it missed the report of the seal.
void SessionSealing::add_to_completed(storage::SessionState state) {
  if (state != storage::SessionState::kComplete) return;
  const storage::SessionIdentity& identity = session_.writer().identity();
  storage::SessionPath session_path;
  session_path.pid = identity.pid;
  session_path.name = session_.name();
  session_path.directory = session_.directory();
  session_.dependencies().completed->add(identity.process_id, identity.recording, session_path);
}

// kWhole: all of it is on disk now.
SessionSealing::Outcome SessionSealing::seal_files(SessionReport::Sealed& sealed) {
  storage::Session& writer = session_.writer();
  const Status status = writer.seal(sealed.state, sealed.reason);
  session_.count_totals();
  if (writer.sealed()) have_named(writer.functions(), sealed);
  if (status.ok()) return Outcome::kWhole;
  if (status.code() == Code::kExhausted && !writer.sealed()) return Outcome::kTryAgain;
  sealed.state = storage::SessionState::kFailed;
  const std::string why = storage::seal_reason(status.error());
  if (sealed.reason.find(why) == std::string::npos) sealed.reason += "; sealing failed: " + why;
  sealed.deferred = !writer.sealed() && status.code() == Code::kNoSpace;
  return writer.sealed() ? Outcome::kWhole : Outcome::kNotWhole;
}

SessionSealing::Outcome SessionSealing::recover(SessionReport::Sealed& sealed) {
  const StoredSession::Dependencies& dependencies = session_.dependencies();
  const auto recovered = storage::recover_session(*dependencies.fs, *dependencies.options,
                                                  session_.recover_directory());
  if (!recovered.ok() && recovered.code() == Code::kExhausted) return Outcome::kTryAgain;
  if (!recovered.ok()) {
    sealed = {storage::SessionState::kFailed, storage::seal_reason(recovered.error()),
              recovered.code() == Code::kNoSpace};
    sealed.health =
        storage::health_of(storage::HealthFacts{.state = sealed.state, .reason = sealed.reason});
    return Outcome::kNotWhole;
  }
  sealed = {recovered->state, recovered->reason};
  sealed.health = recovered->health;
  session_.set_totals(recovered->totals);
  have_named(recovered->functions, sealed);
  return Outcome::kWhole;
}

// Names come afterwards: they can wait, and a file that a peer named is not to delay the seal.
void SessionSealing::have_named(std::vector<uint64_t> functions, SessionReport::Sealed& sealed) {
  const StoredSession::Dependencies& dependencies = session_.dependencies();
  if (functions.empty() || !dependencies.options->symbolize || dependencies.observer == nullptr) {
    return;
  }
  if (dependencies.observer->to_be_named(session_.name(), session_.directory(),
                                         std::move(functions))) {
    sealed.symbols = storage::SymbolsState::kPending;
  }
}

}  // namespace collect::ingest
